"""How fast a report opens and filters in Chromium: `python tests/benchmarks/page_filter.py [--cells N ...]`.

Writes synthetic results folders and their pages, opens each several times, and prints a table of medians: until the
page has loaded, and from a choice in one of the four menus until the next picture is drawn. Needs playwright and
Chromium, see .ci/integrations.d/browser.sh.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright
from report import build

from vcpo_bench.reports.writers.html import write_page

CHOICES = (("task", "walk"), ("lag", "16"), ("lr", "3e-4"), ("method", "vcpo"))
CHOOSE = """([name, value]) => new Promise((done) => {
    const menu = document.querySelector(`select[name=${name}]`), began = performance.now();
    menu.value = value;
    menu.dispatchEvent(new Event("change"));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""
REPEATS = 5


def measure(page: Page, address: str) -> tuple[float, list[float]]:
    """Milliseconds until the page has loaded, and for each of `CHOICES`, one on top of the other."""
    began = time.perf_counter()
    page.goto(address)
    opened = (time.perf_counter() - began) * 1e3
    return opened, [page.evaluate(CHOOSE, list(choice)) for choice in CHOICES]


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    print("| cells | page | opens | " + " | ".join(name for name, _ in CHOICES) + " |")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as name:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for cells in options.cells:
            folder = Path(name) / str(cells)
            number = build(folder / "results", cells, options.steps)
            path = write_page(folder / "results", folder / "report.html")
            runs = [measure(browser.new_page(), path.as_uri()) for _ in range(REPEATS)]
            filtered = zip(*(chosen for _, chosen in runs), strict=True)
            times = [median(opened for opened, _ in runs), *map(median, filtered)]
            shown = " | ".join(f"{one:.0f} ms" for one in times)
            print(f"| {number:,} | {path.stat().st_size / 1e6:.1f} MB | {shown} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
