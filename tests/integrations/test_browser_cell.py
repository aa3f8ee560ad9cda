"""One run in the page, opened: curves with axes, the onset, and its files, in headless Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def page_file(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    root = tmp_path_factory.mktemp("cell")
    make_results(root / "results", methods=("vcpo", "tis"), lags=(1, 16), steps=120, seeds=(0, 1))
    return write_page(root / "results", root / "results" / "report.html")


@pytest.fixture
def open_cell(open_page: Callable[..., Any]) -> Callable[[Path, int], tuple[Any, Any]]:
    def opened(page: Path, width: int) -> tuple[Any, Any]:
        tab = open_page(page, width)
        assert tab.locator(".spark text").count() == 0, "axes are drawn before anyone looks"
        cell = tab.locator("details.cell").filter(has_text="lag 16").filter(has_text="collapse").first
        cell.locator("summary").click()
        cell.locator(".spark text").first.wait_for()
        return tab, cell

    return opened


@pytest.mark.parametrize("width", [1280, 390])
def test_an_opened_cell_has_curves_with_axes(
    open_cell: Callable[..., tuple[Any, Any]], page_file: Path, width: int
) -> None:
    tab, cell = open_cell(page_file, width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    curves = cell.locator(".sparks > div")
    names = [text.split(" (")[0] for text in curves.locator("> span").all_inner_texts()]
    assert names == ["reward", "ESS ratio", "gradient norm", "KL", "lag"]
    onset = cell.locator("summary span").inner_text().rpartition(" ")[2]
    for each in range(5):
        texts = curves.nth(each).locator("svg text").all_text_contents()
        assert "optimizer update" in texts
        assert f"onset, update {onset}" in texts
        numbers = [text for text in texts if text.replace(".", "").replace("e-", "").isdigit()]
        assert len(numbers) >= 5, "ticks on both axes"
        box = curves.nth(each).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert "requested 16" in curves.nth(4).locator("svg text").all_text_contents()
    drawn = cell.locator("svg text").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().height)")
    assert min(drawn) >= 9, "labels can be read"


def test_axes_are_drawn_once_and_in_scale(open_cell: Callable[..., tuple[Any, Any]], page_file: Path) -> None:
    _, cell = open_cell(page_file, 1280)
    reward = cell.locator(".spark").first
    before = reward.locator("text").count()
    cell.locator("summary").click()
    cell.locator("summary").click()
    assert reward.locator("text").count() == before
    code = """(svg) => Object.fromEntries([...svg.querySelectorAll("text[text-anchor=end]")]
        .map((one) => [one.textContent, Number(one.getAttribute("y"))]))"""
    places = reward.evaluate(code)
    assert places["0"] > places["0.5"] > places["1"]
    assert places["0"] - places["0.5"] == pytest.approx(places["0.5"] - places["1"])


def test_the_files_of_a_cell_are_one_click_away(
    open_cell: Callable[..., tuple[Any, Any]], page_file: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree(page_file.parent, copied)  # the page moves together with the folder
    tab, cell = open_cell(copied / "report.html", 1280)
    key = cell.locator("dd").first.inner_text()
    cell.get_by_role("link", name=f"cells/{key}").click()
    tab.wait_for_url("**/cells/**")
    assert "cell.json" in tab.content()
