"""The page as it is read: contents beside it, folded sections, anchors that land, and figures on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def page_file(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    root = tmp_path_factory.mktemp("reading")
    make_results(root / "results", methods=("vcpo", "tis"), lags=(1, 16, 128), steps=60, seeds=(0,))
    return write_page(root / "results", root / "report.html")


def test_at_most_nine_sections_are_open_and_the_rest_open_on_demand(
    open_page: Callable[..., Any], page_file: Path
) -> None:
    tab = open_page(page_file, unfold=False)
    assert 5 <= tab.locator("main > section").count() <= 9
    folded = tab.locator("main > details.section")
    assert folded.count() >= 5
    assert not any(folded.evaluate_all("found => found.map(one => one.open)"))
    figure = tab.locator("#gradients figure").first
    assert figure.is_hidden()
    tab.locator(".toc a[href='#gradients']").click()
    figure.wait_for(state="visible")


def test_the_contents_stay_in_sight(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file, 1400, unfold=False)
    tab.evaluate("scrollTo({ top: 3000, behavior: 'instant' })")
    box = tab.locator(".toc ul").bounding_box()
    assert 0 <= box["y"] < 100
    assert box["x"] + box["width"] <= tab.locator("main").bounding_box()["x"]


@pytest.mark.parametrize("width", [1400, 390])
def test_every_anchor_lands(open_page: Callable[..., Any], page_file: Path, width: int) -> None:
    tab = open_page(page_file, width, unfold=False)
    tab.add_style_tag(content="html { scroll-behavior: auto !important; }")
    end = "document.documentElement.scrollHeight - innerHeight - scrollY"
    for link in tab.locator(".toc a").all():
        if width < 1000:
            tab.locator(".toc button").click()
        link.click()
        anchor = link.get_attribute("href")
        tab.wait_for_function(
            "(id) => document.querySelector(id).getBoundingClientRect().top < innerHeight", arg=anchor
        )
        tab.wait_for_timeout(50)
        top = tab.locator(anchor).bounding_box()["y"]
        assert -2 <= top <= 90 or tab.evaluate(end) < 2, f"{anchor} lands at {top}"


def test_figures_on_a_phone_show_every_lag_in_letters_that_can_be_read(
    open_page: Callable[..., Any], page_file: Path
) -> None:
    tab = open_page(page_file, 390)
    drawings = tab.locator(".drawing").all()
    assert len(drawings) >= 7
    for drawing in drawings:
        (box,) = (svg.bounding_box() for svg in drawing.locator("svg.drawn").all() if svg.is_visible())
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, "nothing is left to the side"
        points = drawing.locator("svg.drawn").last.evaluate("svg => svg.viewBox.baseVal.width")
        assert 8 * box["width"] / points >= 8.5, "css pixels of the smallest letters, which are drawn in 8 points"
