"""The page in headless Chromium: no console errors, sorting and filtering, room on a phone."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from irtjax.report.audit_page import audit

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PHONE = 390

# Runs in the page: sorts the models by ability both ways, filters them, and measures.
PROBE = """
<script>
// Of the flags: whether rows are cards that fit, how many are seen before and after the button.
const cards = () => {
  const box = document.querySelector("#flags .cards").closest(".table");
  const seen = () => [...box.querySelectorAll("tbody tr")].filter((row) => row.offsetParent);
  const before = seen(), more = box.querySelector("button.all");
  const widest = Math.max(...before.map((row) => row.getBoundingClientRect().right));
  const label = getComputedStyle(before[0].cells[1], "::before").content;
  const isCard = getComputedStyle(before[0]).display === "grid";
  const hasButton = more.offsetParent !== null;
  more.click();
  const sorter = box.querySelector("select.sort");
  return {
    isCard, hasButton, label, widest, before: before.length, after: seen().length,
    all: box.querySelectorAll("tbody tr").length, hasSorter: sorter.offsetParent !== null,
  };
};
window.addEventListener("load", () => {
  const box = document.querySelector("#models .table");
  const column = 1, head = box.querySelectorAll("th button")[column];
  const values = () => [...box.querySelectorAll("tbody tr")].filter((row) => !row.hidden)
    .map((row) => Number(row.cells[column].dataset.v));
  head.click();
  const falling = values();
  head.click();
  const rising = values();
  const search = box.querySelector("input");
  search.value = "SCRIPT";
  search.dispatchEvent(new Event("input", { bubbles: true }));
  const told = {
    falling, rising, matches: values().length, count: box.querySelector(".count").textContent,
    width: document.documentElement.scrollWidth, inner: window.innerWidth,
    room: document.documentElement.clientWidth,
    pictures: document.querySelectorAll("figure svg").length,
    named: [...document.querySelectorAll("figure svg, .scroll, input, select")]
      .every((each) => each.ariaLabel || each.getAttribute("aria-labelledby")),
    cards: cards(),
    tables: Object.fromEntries(["models", "dims", "benchmarks"].map((name) => [
      name, [...document.querySelectorAll(`#${name} tbody`)]
        .map((body) => [...body.rows].find((row) => !row.hidden))
        .map((row) => getComputedStyle(row).display),
    ])),
    // How much of the flags is hidden beside the text, which stands right after the reason.
    hidden: (({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(
      document.querySelector("#flags .cards")),
    columns: [...document.querySelectorAll("#flags .cards thead th")].slice(0, 5)
      .map((head) => head.textContent),
  };
  document.title = "probe " + JSON.stringify(told);
  window.parent.document.title = document.title;
});
</script>
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="module")
def page(hostile_fit, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(audit(hostile_fit, quick=True).html.replace("</body>", PROBE + "</body>"))
    return path


def opened(chromium: str, path: Path, width: int, *more: str) -> tuple[str, str]:
    """The document after its scripts have run, and what the browser logged."""
    options = [
        "--headless=new",
        "--disable-gpu",
        "--no-first-run",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        "--virtual-time-budget=4000",
        f"--user-data-dir={path.parent / f'profile-{width}'}",
        f"--window-size={width},900",
    ]
    if hasattr(os, "getuid") and os.getuid() == 0:
        options.append("--no-sandbox")  # Chromium refuses to run as root with it
    done = subprocess.run(
        [chromium, *options, *more, path.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def told(document: str) -> dict:
    title = re.search(r"<title>probe (.*?)</title>", document)
    assert title, document[:500]
    return json.loads(title[1])


def test_the_page_sorts_and_filters_without_console_errors(chromium, page):
    document, log = opened(chromium, page, 1200, "--dump-dom")
    assert "CONSOLE" not in log, log
    found = told(document)
    assert len(found["falling"]) == 30
    assert found["falling"] == sorted(found["falling"], reverse=True)
    assert found["rising"] == sorted(found["rising"])
    assert found["matches"] == 1
    assert found["count"] == "1 of 30 rows"
    assert found["pictures"] >= 10
    assert found["width"] <= 1200
    assert found["named"]
    cards = found["cards"]
    assert found["hidden"] <= 0
    assert found["columns"] == ["item id", "flag", "reason", "text", "value"]
    assert not cards["isCard"]
    assert not cards["hasButton"]
    assert cards["before"] == cards["all"]


def test_an_error_in_the_page_would_be_seen(chromium, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<title>x</title><script>missing()</script>")
    assert "CONSOLE" in opened(chromium, path, 600, "--dump-dom")[1]


def test_the_page_fits_a_phone(chromium, page):
    # Chromium's own window is at least 500 wide.
    frame = page.with_name("phone.html")
    style = f"width:{PHONE}px;height:844px;border:0"
    frame.write_text(f'<title></title><iframe src="{page.name}" style="{style}"></iframe>')
    document, log = opened(chromium, frame, 800, "--dump-dom")
    assert "CONSOLE" not in log, log
    found = told(document)
    assert found["inner"] == PHONE
    assert found["width"] == found["room"]  # nothing sticks out
    for name in ("models", "dims", "benchmarks"):
        assert set(found["tables"][name]) == {"grid"}, name  # nothing is cut off on the right
    cards = found["cards"]
    assert cards["isCard"]
    assert cards["hasSorter"]
    assert cards["label"] == '"flag"'
    assert cards["widest"] <= PHONE
    assert cards["before"] == min(10, cards["all"])
    assert cards["after"] == cards["all"]


def test_the_page_prints(chromium, page, tmp_path):
    target = tmp_path / "page.pdf"
    _, log = opened(chromium, page, 1000, f"--print-to-pdf={target}")
    assert "CONSOLE" not in log, log
    printed = target.read_bytes()
    assert printed.startswith(b"%PDF")
    # A narrow column of texts made 22 pages of a report with 28 flags that has 13 as cards.
    n_pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 5 < n_pages <= 18
