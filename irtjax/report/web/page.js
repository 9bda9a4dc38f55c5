"use strict";
for (const box of document.querySelectorAll(".table")) {
  const body = box.querySelector("tbody");
  const heads = [...box.querySelectorAll("th")];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent;
  };
  const compare = (a, b) => {
    // Empty cells go last, whichever way is sorted.
    if (a === "" || b === "") return null;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const isNumber = head.classList.contains("n");
      const was = head.getAttribute("aria-sort");
      const first = isNumber ? "descending" : "ascending";
      const other = isNumber ? "ascending" : "descending";
      const now = was === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", now);
      const sign = now === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      rows.sort(([a], [b]) => {
        const order = compare(a, b);
        return order === null ? (a === "") - (b === "") : sign * order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
  const tools = box.querySelector(".tools");
  if (!tools) continue;
  const search = tools.querySelector("input");
  const selects = [...tools.querySelectorAll("select")];
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
    count.textContent = `${shown.toLocaleString("en")} of ${body.rows.length.toLocaleString("en")} rows`;
  };
  tools.addEventListener("input", filter);
  filter();
}
