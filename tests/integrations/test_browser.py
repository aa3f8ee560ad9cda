"""The page in headless Chromium: legends, tables, reading values, downloads, no console message and no request."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WIDTHS = ((1280, "light"), (800, "dark"), (390, "light"))


@pytest.fixture(scope="module")
def page_file(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    root = tmp_path_factory.mktemp("browser")
    make_results(root / "results", methods=("vcpo", "tis", "gspo"), lags=(1, 16), steps=120, lrs=(1e-4, 3e-4))
    return write_page(root / "results", root / "report.html")


def drawn(tab: Any, method: int) -> int:
    groups = tab.locator(f"#figure-reward-steps-chain .m{method}")
    return groups.evaluate_all("found => found.filter(one => one.style.display !== 'none').length")


def test_legend_hides_and_isolates_with_mouse_and_keyboard(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    legend = tab.locator("#figure-reward-steps-chain .legend button")
    assert legend.all_inner_texts() == ["gspo", "tis", "vcpo", "reinforce"]
    assert all(drawn(tab, method) for method in range(4))
    legend.nth(1).click()
    assert [bool(drawn(tab, method)) for method in range(4)] == [True, False, True, True]
    assert legend.nth(1).get_attribute("aria-pressed") == "false"
    legend.nth(1).press("Enter")
    assert drawn(tab, 1)
    legend.nth(2).click(modifiers=["Shift"])
    assert [bool(drawn(tab, method)) for method in range(4)] == [False, False, True, False]
    legend.nth(2).dblclick()
    assert all(drawn(tab, method) for method in range(4))


def test_table_sorts_and_downloads(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    heading = tab.locator("#table-scoreboard th", has_text="final reward")
    column = "#table-scoreboard tbody tr td[data-label='final reward']"
    heading.locator("button").click()
    rising = [float(text) for text in tab.locator(column).all_inner_texts()]
    assert rising == sorted(rising)
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").press("Enter")
    assert [float(text) for text in tab.locator(column).all_inner_texts()] == rising[::-1]
    with tab.expect_download() as download:
        tab.locator("#table-scoreboard button", has_text="CSV").click()
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    assert rows[0][:4] == ["lr", "lag", "method", "final reward"]
    assert len(rows) == len(rising) + 1


_POINTED_AT = """(figure, [across, down]) => {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const view = figure.querySelector(".drawing svg").viewBox.baseVal;
  const [px, py] = [across * view.width, down * view.height];
  const inside = ({ box }) => px > box[0] && px < box[2] && py > box[1] && py < box[3];
  const panel = data.panels.findIndex(inside), { box, x: [low, high] } = data.panels[panel];
  const line = data.lines.find((one) => one.panel === panel && one.name === "vcpo"), updates = data.xs[line.x];
  const update = low + (px - box[0]) / (box[2] - box[0]) * (high - low);
  const at = updates.map((one) => Math.abs(one - update)).reduce((best, far, i, all) => far < all[best] ? i : best, 0);
  return [updates[at], line.y[at]];
}"""
"""The update nearest to a place in a figure, and the value of vcpo there, from the figure's data."""


def test_hovering_and_arrow_keys_read_values(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    figure = tab.locator("#figure-reward-steps-chain")
    figure.scroll_into_view_if_needed()
    box = figure.locator(".drawing > svg").bounding_box()
    tab.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.3 * box["height"])
    text = figure.locator(".readout").inner_text()
    update, value = figure.evaluate(_POINTED_AT, [0.9, 0.3])
    assert text.startswith(f"lr 1e-4, lag 16, update {update}: ")
    assert float(re.findall(r"\bvcpo (\S+)", text)[0]) == pytest.approx(value, rel=1e-2)
    assert "tis" in text
    figure.locator(".drawing").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    assert figure.locator(".readout").inner_text().startswith("lr 3e-4, lag 0, ")


_BLOCK_MIDDLES = """figure => {
  const data = JSON.parse(figure.querySelector("script").textContent), svg = figure.querySelector("svg");
  const [, top, , bottom] = data.panels[0].box, frame = svg.getBoundingClientRect();
  const height = (bottom - top) / data.blocks.length, scale = frame.height / svg.viewBox.baseVal.height;
  return data.blocks.map((_, block) => frame.top + (top + (block + 0.5) * height) * scale);
}"""
"""Where on the screen the middles of a heat map's blocks are."""


def test_heat_map_reads_the_row_under_the_pointer(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    figure = tab.locator("#figure-ess-map-chain")
    figure.scroll_into_view_if_needed()
    box = figure.locator(".drawing > svg").bounding_box()
    tab.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.05 * box["height"])
    assert re.match(r"lag 0, reinforce, lr 1e-4, seed \d, update 5\d: 0\.9", figure.locator(".readout").inner_text())
    blocks = tab.evaluate(_BLOCK_MIDDLES, figure.element_handle())
    assert len(blocks) == 9, "lag 0 has one method, lags 1 and 16 have four each"
    for label, y in (("lag 0, reinforce", blocks[0]), ("lag 16, vcpo", blocks[-1])):
        tab.mouse.move(box["x"] + 0.5 * box["width"], y)
        assert figure.locator(".readout").inner_text().startswith(f"{label}, lr ")


def test_figures_offer_their_data_and_drawing(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    figure = tab.locator("#figure-ess-steps-chain")
    with tab.expect_download() as download:
        figure.locator("button", has_text="CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert {row["series"] for row in rows} == {"gspo", "tis", "vcpo", "reinforce"}
    assert all(0 < float(row["ess_ratio"]) <= 1 for row in rows)
    with tab.expect_download() as download:
        figure.locator("button", has_text="SVG").click()
    drawing = Path(download.value.path()).read_text()
    tab.set_content(f"<body>{drawing}</body>")
    assert tab.evaluate("document.querySelector('svg').getBBox().width") > 300


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_page_fits_and_looks_right(
    open_page: Callable[..., Any], page_file: Path, width: int, scheme: str, tmp_path: Path
) -> None:
    tab = open_page(page_file, width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out sideways"
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    tab.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 50_000
    sizes = "found => found.map(one => parseFloat(getComputedStyle(one).fontSize))"
    assert min(tab.locator("p, li, td, figcaption").evaluate_all(sizes)) >= 12


def test_everything_is_reached_by_keyboard(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    unnamed = "found => found.filter(one => !one.textContent.trim() && !one.ariaLabel).length"
    assert tab.locator("button, a, [tabindex]").evaluate_all(unnamed) == 0
    assert tab.locator("details.cell").first.evaluate("e => e.open") is False
    tab.locator("details.cell summary").first.press("Enter")
    assert tab.locator("details.cell").first.evaluate("e => e.open") is True
    assert tab.locator("details.cell .spark").first.is_visible()
