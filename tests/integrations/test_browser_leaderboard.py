"""The leaderboard of the repository's own studies in headless Chromium: filter, boards, a phone, nothing requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies" / "leaderboard"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.analysis.comparison.leaderboard import read_entry
    from vcpo_bench.reports.writers.leaderboard import write_site

    folder = tmp_path_factory.mktemp("leaderboard")
    write_site(folder, [read_entry(path) for path in sorted(STUDIES.glob("*.json"))])
    return folder


def shown(tab: Any) -> list[list[str]]:
    """Task, regime, lag, rate, method of every row in sight, over all boards in sight."""
    code = """[...document.querySelectorAll('.board:not([hidden]) tbody tr:not([hidden])')]
        .map((row) => [...row.cells].slice(0, 5).map((cell) => cell.textContent))"""
    return tab.evaluate(code)


def test_the_filter_offers_what_is_on_any_board_and_hides_boards_without_it(
    open_page: Callable[..., Any], site: Path
) -> None:
    tab = open_page(site / "index.html")
    every, boards = len(shown(tab)), tab.locator(".board").count()
    tasks = tab.locator("select[name=task] option").all_inner_texts()
    entries = [json.loads(path.read_text()) for path in STUDIES.glob("*.json")]
    assert {"all"} | {row["task"] for entry in entries for row in entry["rows"]} == set(tasks)
    tab.select_option("select[name=task]", "lookup")
    tab.select_option("select[name=method]", "vcpo")
    rows = shown(tab)
    assert {(row[0], row[4]) for row in rows} == {("lookup", "vcpo")}
    assert {row[2] for row in rows} == {"0", "8"}
    assert tab.locator(".board:visible").count() == 1 < boards
    assert "of" in tab.locator(".filter output").inner_text()
    tab.get_by_text("Show all").click()
    assert len(shown(tab)) == every
    assert tab.locator(".board:visible").count() == boards


def test_choices_that_nothing_meets_say_so(open_page: Callable[..., Any], site: Path) -> None:
    tab = open_page(site / "index.html")
    tab.select_option("select[name=task]", "guess")
    tab.select_option("select[name=lag]", "64")
    assert shown(tab) == []
    assert tab.locator(".filter output").inner_text().startswith("0 of ")


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_shows_every_column_without_sideways_scrolling(
    open_page: Callable[..., Any], site: Path, width: int
) -> None:
    tab = open_page(site / "index.html", width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for holder in tab.locator(".board .wide").all():
        assert holder.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 1
    labels = (
        tab.locator(".board tbody tr")
        .first.locator("td")
        .evaluate_all(
            "(cells) => cells.map((cell) => [cell.dataset.label, getComputedStyle(cell, '::before').content])"
        )
    )
    names = ["task", "regime", "lag", "lr", "method", "score", "95%", "collapsed", "seeds", "study"]
    assert labels == [[name, f'"{name}"'] for name in names]
    boxes = (
        tab.locator(".board tbody tr")
        .first.locator("td")
        .evaluate_all(
            "(cells) => cells.map((cell) => cell.getBoundingClientRect()).map((box) => [box.left, box.right])"
        )
    )
    assert all(0 <= left < right <= width for left, right in boxes)


def test_links_lead_to_boards_and_studies_on_the_page(open_page: Callable[..., Any], site: Path) -> None:
    tab = open_page(site / "index.html")
    targets = tab.locator("a[href^='#']").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
    assert len(targets) > 100
    missing = "(names) => [...new Set(names)].filter((name) => !document.getElementById(name.slice(1)))"
    assert tab.evaluate(missing, targets) == []


def test_entries_are_beside_the_page(open_page: Callable[..., Any], site: Path) -> None:
    tab = open_page(site / "index.html")
    files = tab.locator("#studies dd a").evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
    assert len(files) == 2 * len(list(STUDIES.glob("*.json")))
    assert all((site / file).is_file() for file in files)


def test_a_heading_sorts_its_board(open_page: Callable[..., Any], site: Path) -> None:
    tab = open_page(site / "index.html", scheme="dark")
    board = tab.locator(".board").first
    board.locator("th", has_text="score").get_by_role("button").click()
    cells = board.locator("tbody tr td:nth-child(6)").all_inner_texts()
    scores = [float(text.replace("\N{MINUS SIGN}", "-")) for text in cells]
    assert scores in (sorted(scores), sorted(scores, reverse=True))
    assert len(set(scores)) > 5
