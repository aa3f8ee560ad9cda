"""How fast a report opens and filters in Chromium: `python tests/benchmarks/page_filter.py [--cells N ...]`.

Writes synthetic results folders and their pages, opens each several times, and prints medians: processor time of the
page's main thread until the page is drawn, and from a choice in a menu until the next picture is. Other work on the
machine does not count. Needs playwright and Chromium, see .ci/integrations.d/browser.sh.
"""

import argparse
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright
from report import build

from vcpo_bench.reports.writers.html import write_page

CHOICES = (("task", "walk"), ("lag", "16"), ("lr", "3e-4"), ("method", "vcpo"))
DRAWN = "() => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); })"
REPEATS = 5
PATIENCE_MS = 600_000


def measure(browser: Browser, address: str) -> list[float]:
    """Milliseconds of the page's main thread until it is drawn, and for each of `CHOICES`, one on top of the other."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    inspector = page.context.new_cdp_session(page)
    inspector.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        page.evaluate(DRAWN)
        found = {one["name"]: one["value"] for one in inspector.send("Performance.getMetrics")["metrics"]}
        return float(found["TaskDuration"]) * 1e3

    page.goto(address, wait_until="load")
    times = [spent()]
    for name, value in CHOICES:
        page.select_option(f"select[name={name}]", value)
        times.append(spent())
    page.close()
    return [times[0], *(after - before for before, after in pairwise(times))]


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
            runs = [measure(browser, path.as_uri()) for _ in range(REPEATS)]
            shown = " | ".join(f"{median(column):.0f} ms" for column in zip(*runs, strict=True))
            print(f"| {number:,} | {path.stat().st_size / 1e6:.1f} MB | {shown} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
