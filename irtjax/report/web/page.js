"use strict";
// Of long tables a phone shows the first cards until asked for all, and paper the first rows.
const FIRST_CARDS = 10;
const PRINTED_ROWS = 40;

const cellValue = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
};

const compared = (a, b) => {
  // Empty cells go last, whichever way is sorted.
  if (a === "" || b === "") return null;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
};

for (const box of document.querySelectorAll(".table")) {
  const body = box.querySelector("tbody");
  const heads = [...box.querySelectorAll("thead th")];
  const isCards = box.querySelector(".cards") !== null;
  const tools = box.querySelector(".tools");
  const more = box.querySelector("button.all");
  const format = (n) => n.toLocaleString("en");

  const mark = () => {
    const shown = [...body.rows].filter((row) => !row.hidden);
    for (const row of body.rows) row.classList.remove("late", "unprinted");
    shown.slice(FIRST_CARDS).forEach((row) => row.classList.toggle("late", isCards));
    shown.slice(PRINTED_ROWS).forEach((row) => row.classList.add("unprinted"));
    more.hidden = !isCards || shown.length <= FIRST_CARDS || box.classList.contains("open");
    more.textContent = `Show all ${format(shown.length)}`;
    box.querySelector(".printed").textContent =
      shown.length > PRINTED_ROWS ? `Printed: the first ${PRINTED_ROWS}.` : "";
  };
  more.addEventListener("click", () => {
    box.classList.add("open");
    mark();
    body.rows[FIRST_CARDS].scrollIntoView({ block: "nearest" });
  });

  const sort = (column, direction) => {
    heads.forEach((each) => each.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [cellValue(row, column), row]);
    rows.sort(([a], [b]) => {
      const order = compared(a, b);
      return order === null ? (a === "") - (b === "") : sign * order;
    });
    body.append(...rows.map(([, row]) => row));
    mark();
  };
  const firstWay = (column) => (heads[column].classList.contains("n") ? "descending" : "ascending");
  const otherWay = { ascending: "descending", descending: "ascending" };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const first = firstWay(column);
      sort(column, head.getAttribute("aria-sort") === first ? otherWay[first] : first);
    });
  });
  // Buttons in headings are not repeated on the pages of a printed table, text is.
  addEventListener("beforeprint", () => {
    for (const head of heads) head.dataset.print = head.textContent;
  });

  if (tools && isCards) {
    // Cards have no headings to click.
    const choice = document.createElement("select");
    choice.className = "sort";
    choice.setAttribute("aria-label", "sort by");
    choice.append(new Option("sort by", ""));
    heads.forEach((head, column) => choice.append(new Option(head.textContent, column)));
    choice.addEventListener("change", (event) => {
      event.stopPropagation();
      if (choice.value !== "") sort(Number(choice.value), firstWay(Number(choice.value)));
    });
    tools.insertBefore(choice, tools.querySelector(".count"));
  }
  if (tools) {
    const search = tools.querySelector("input");
    const selects = [...tools.querySelectorAll("select[data-column]")];
    const count = tools.querySelector(".count");
    const filter = () => {
      const text = search ? search.value.trim().toLowerCase() : "";
      let shown = 0;
      for (const row of body.rows) {
        const isShown =
          (text === "" || row.textContent.toLowerCase().includes(text)) &&
          selects.every((select) => {
            const cell = row.cells[Number(select.dataset.column)].textContent;
            return select.value === "" || cell.split(";").includes(select.value);
          });
        row.hidden = !isShown;
        shown += isShown;
      }
      count.textContent = `${format(shown)} of ${format(body.rows.length)} rows`;
      mark();
    };
    tools.addEventListener("input", filter);
    filter();
  } else {
    mark();
  }
}
