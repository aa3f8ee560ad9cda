"""Legends and titles fit their figure, and take no more room than they need."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.sheet import add_legend, legend_columns, panel_grid, titled_columns
from vcpo_bench.reports.writers.venues import VENUES, sheets

METHODS = [
    "clip", "clip+ess", "tis", "tis+lr-matched", "vcpo", "vcpo(baseline=group)", "vcpo(ess=off)", "reinforce",
]  # fmt: skip


@pytest.mark.parametrize("venue", VENUES)
def test_the_legend_of_a_column_fits_in_few_rows(venue: str) -> None:
    sheet = sheets(venue)[0]
    with drawing(sheet.font_size):
        figure, _ = panel_grid(sheet, 1, 1)
        columns = legend_columns(sheet, METHODS)
        add_legend(figure, replace(sheet, legend=True), METHODS)
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
    assert columns >= 2
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_a_wide_figure_puts_more_entries_side_by_side() -> None:
    assert legend_columns(Sheet(width=5.5, font_size=10.0), METHODS) == 3
    assert legend_columns(Sheet(width=7.2, font_size=8.0), METHODS) == 4, "not seven columns and one entry below"
    assert legend_columns(Sheet(width=1.5), METHODS) == 1
    assert legend_columns(Sheet(), ["vcpo"]) == 1


@pytest.mark.parametrize("venue", VENUES)
def test_titles_of_panels_in_a_row_do_not_meet(venue: str) -> None:
    for sheet in sheets(venue):
        with drawing(sheet.font_size):
            columns = titled_columns(sheet, METHODS)
            figure, axes = panel_grid(sheet, len(METHODS), columns)
            for panel, name in zip(axes, METHODS, strict=True):
                panel.set_title(name)
            figure.canvas.draw()
        assert _gap(figure, columns) > 0


def _gap(figure: Figure, columns: int) -> float:
    """Smallest distance between titles side by side, in pixels."""
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    rows = [boxes[start : start + columns] for start in range(0, len(boxes), columns)]
    return min((right.x0 - left.x1 for row in rows for left, right in itertools.pairwise(row)), default=float("inf"))
