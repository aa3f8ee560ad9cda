"""A report of a thousand cells in headless Chromium: it opens, and its filter reaches all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

METHODS = ("vcpo", "vespo", "gspo", "clip", "tis", "vcpo(ess=off)", "vcpo(baseline=group)", "mis")
RATES = (1e-4, 3e-4)
LAGS = (1, 16, 64)
SEEDS = range(9)
CELLS = 2 * len(RATES) * len(SEEDS) * (len(METHODS) * len(LAGS) + 1 + len(LAGS))
"""Two tasks; beside the methods, `reinforce` at every lag and at lag 0."""


@pytest.fixture(scope="module")
def page_file(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from vcpo_bench.reports.writers.html import write_page

    root = tmp_path_factory.mktemp("many")
    make_results(root / "results", METHODS, LAGS, SEEDS, 30, tasks=("chain", "walk"), lrs=RATES)
    return write_page(root / "results", root / "report.html")


@pytest.fixture
def tab(open_page: Callable[..., Any], page_file: Path) -> Any:
    return open_page(page_file)


def test_a_thousand_cells_are_there_and_the_filter_reaches_them_all(tab: Any) -> None:
    assert CELLS > 1000
    cells = tab.locator("details.cell")
    assert cells.count() == CELLS
    for name, value in (("task", "walk"), ("lag", "16"), ("lr", "3e-4"), ("method", "mis")):
        tab.select_option(f"select[name={name}]", value)
    left = tab.locator("details.cell:not([hidden])")
    assert left.count() == len(SEEDS)
    wanted = {"task": "walk", "lag": "16", "lr": "3e-4", "method": "mis"}
    found = left.evaluate_all("(cells) => cells.map((one) => ({ ...one.dataset }))")
    assert [one | wanted for one in found] == found
    assert f"{len(SEEDS)} of {CELLS} cells" in tab.locator(".filter output").inner_text()
    tab.get_by_text("Show all").click()
    assert tab.locator("details.cell:not([hidden])").count() == CELLS


def test_one_cell_among_them_opens(tab: Any) -> None:
    tab.select_option("select[name=method]", "vespo")
    first = tab.locator("details.cell:not([hidden])").first
    tab.locator("details.cells:not([hidden])").first.evaluate("(group) => { group.open = true; }")
    first.locator("summary").click()
    assert first.locator(".spark").first.is_visible()
    assert "vespo" in first.inner_text()
