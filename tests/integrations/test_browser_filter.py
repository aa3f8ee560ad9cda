"""The page's filter, its shared legends, its cards on a phone and its ids, in headless Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

GALLERY = ".gallery:has(#figure-reward-lag-chain)"


@pytest.fixture(scope="module")
def page_file(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    root = tmp_path_factory.mktemp("filter")
    tasks = ("chain", "walk")
    make_results(root / "results", methods=("vcpo", "tis"), lags=(1, 16), steps=60, seeds=(0, 1), tasks=tasks)
    return write_page(root / "results", root / "report.html")


def shown_rows(tab: Any, table: str) -> list[list[str]]:
    code = f"""[...document.querySelectorAll('#table-{table} tbody tr')].filter((row) => !row.hidden)
        .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    return tab.evaluate(code)


def test_the_first_screen_answers_before_anything_else(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    first = tab.locator("main section").first
    assert first.locator("h2").inner_text() == "In short"
    said = first.locator("li").all_inner_texts()
    assert len(said) <= 3
    assert ["the tasks disagree" in said[0], "vcpo ends at" in said[1]] == [True, True]
    figure, answer, more = (first.locator(name).first.bounding_box() for name in ("figure", "li", "p:last-child"))
    assert figure["y"] < answer["y"] < more["y"] < 900


def test_the_filter_reaches_tables_figures_and_cells(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    every = len(shown_rows(tab, "scoreboard"))
    tab.select_option("select[name=method]", "vcpo")
    tab.select_option("select[name=task]", "chain")
    rows = shown_rows(tab, "scoreboard")
    assert {(row[0], row[2]) for row in rows} == {("chain", "vcpo")}
    assert len(rows) == 2 < every
    assert tab.locator("#figure-reward-lag-walk").is_hidden()
    pressed = tab.locator(f"{GALLERY} > .legend button[aria-pressed=true]")
    assert [text.strip() for text in pressed.all_inner_texts()] == ["vcpo"]
    left = tab.locator("details.cell:not([hidden])")
    assert left.count() == 4
    assert all("vcpo" in text for text in left.all_inner_texts())
    assert "of" in tab.locator(".filter output").inner_text()
    tab.select_option("select[name=lag]", "16")
    said = [text for text in tab.locator("main .statement:visible").all_inner_texts() if text.startswith("Lag ")]
    assert said
    assert all(text.startswith("Lag 16") for text in said)
    assert "figures show every lag" in tab.locator(".filter output").inner_text()
    tab.get_by_text("Show all").click()
    assert len(shown_rows(tab, "scoreboard")) == every
    assert tab.locator("#figure-reward-lag-walk").is_visible()


def test_rows_of_all_tasks_stay_when_one_is_chosen(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    every = shown_rows(tab, "ranking")
    assert {row[1] for row in every} == {"all tasks", "chain", "walk"}
    tab.select_option("select[name=task]", "chain")
    assert shown_rows(tab, "ranking") == [row for row in every if row[1] != "walk"]
    tab.select_option("select[name=lag]", "16")
    tab.select_option("select[name=method]", "tis")
    assert [row[:3] for row in shown_rows(tab, "ranking")] == [["16", "all tasks", "tis"], ["16", "chain", "tis"]]


def test_one_legend_rules_its_gallery_and_stays_in_sight(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    legend = tab.locator(f"{GALLERY} > .legend")
    assert [text.strip() for text in legend.locator("button").all_inner_texts()] == ["tis", "vcpo", "reinforce"]
    assert tab.locator(f"{GALLERY} figure .legend").count() == 0
    legend.locator("button").nth(0).click()
    for task in ("chain", "walk"):
        shown = "found => found.map(one => one.style.display !== 'none')"
        assert not any(tab.locator(f"#figure-reward-lag-{task} .m0").evaluate_all(shown))
        assert all(tab.locator(f"#figure-reward-lag-{task} .m1").evaluate_all(shown))
    tab.locator("#figure-reward-lag-walk figcaption").evaluate("one => one.scrollIntoView({block: 'end'})")
    tab.wait_for_timeout(800)  # the page scrolls smoothly
    assert 0 <= legend.bounding_box()["y"] < 300


def test_a_saved_figure_takes_its_legend_along(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file)
    tab.locator(f"{GALLERY} > .legend button").nth(0).click()
    with tab.expect_download() as download:
        tab.locator("#figure-reward-lag-walk button", has_text="SVG").click()
    root = ElementTree.parse(download.value.path()).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert [one.text for one in root.findall(f"{space}text")] == ["vcpo", "reinforce"]
    left, top, _, height = (float(number) for number in root.get("viewBox", "").split())
    assert left == 0 > top
    assert all(top <= float(one.get("y", "")) <= 0 for one in root.findall(f"{space}svg"))
    assert height > -top


def test_a_phone_shows_every_column_without_sideways_scrolling(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file, 390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    holder = tab.locator("#table-scoreboard .wide")
    assert holder.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 1
    labels = (
        tab.locator("#table-scoreboard tbody tr")
        .first.locator("td")
        .evaluate_all(
            "(cells) => cells.map((cell) => [cell.dataset.label, getComputedStyle(cell, '::before').content])"
        )
    )
    assert [name for name, _ in labels][:4] == ["task", "lag", "method", "final reward"]
    assert all(drawn == f'"{name}"' for name, drawn in labels)


def test_ids_can_be_selected_by_click_and_by_touch(open_page: Callable[..., Any], page_file: Path) -> None:
    tab = open_page(page_file, 390)
    assert "statement-" not in tab.locator("main").inner_text(), "ids are not in the way"
    statement = tab.locator(".statement").first
    assert statement.get_attribute("title").startswith("statement-")
    statement.click()
    assert statement.get_attribute("data-id") in tab.locator(".toast code").inner_text()
    tab.locator("h1").click()
    number = tab.locator("#table-scoreboard td[data-id]").first
    number.click()
    assert tab.locator(".toast code").inner_text() == f"vcpo-bench results trace {number.get_attribute('data-id')} DIR"
    tab.locator("h1").click()
    assert tab.locator(".toast").is_hidden()
