"""Figures that show the same methods stand under one legend, on the page and in print."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from vcpo_bench.reports.document import Document, Picture, Section
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.sheet import LEGEND_ROW, legend_strip, panel_grid
from vcpo_bench.reports.writers.galleries import Gallery, in_galleries
from vcpo_bench.reports.writers.html import render_document
from vcpo_bench.reports.writers.pdf import PRINT, _section
from vcpo_bench.reports.writers.venues import sheets


def folded(*legends: str | None) -> list[object]:
    """Blocks with a letter per method, and what they became: text, or figures and legend."""
    blocks = in_galleries(legends, lambda block: None if block is None else list(block))
    return [(one.figures, "".join(one.legend)) if isinstance(one, Gallery) else one for one in blocks]


@pytest.mark.parametrize(
    ("legends", "expected"),
    [
        (["ab", "ab"], [(["ab", "ab"], "ab")]),
        (["a", "abc", "bc"], [(["a", "abc", "bc"], "abc")]),
        (["ab", "cd"], [(["ab"], "ab"), (["cd"], "cd")]),
        (["ab", None, "ab"], [(["ab"], "ab"), None, (["ab"], "ab")]),
        (["", "", "a"], [([""], ""), ([""], ""), (["a"], "a")]),
        ([], []),
    ],
)
def test_neighbors_share_a_legend_that_names_all(legends: list[str | None], expected: list[object]) -> None:
    assert folded(*legends) == expected


def draw(name: str, methods: list[str], sheet: Sheet) -> Plot:
    figure, axes = panel_grid(sheet, 1, 1)
    axes[0].plot([0, 1])
    return Plot(name, name, name, figure, methods, panels=["one"])


def section(*figures: tuple[str, list[str]]) -> Section:
    return Section("here", "Here", [Picture(name, partial(draw, name, methods)) for name, methods in figures])


THREE = section(("first", ["vcpo", "tis"]), ("second", ["vcpo", "tis"]), ("other", ["ess", "lr"]))


def test_the_page_has_one_legend_for_a_gallery_and_one_in_a_figure_alone() -> None:
    page = render_document(Document("T", [THREE], Ledger()), [])
    assert page.count('<div class="legend"') == 2
    gallery = page.split('<div class="gallery">')[1]
    names = re.findall(r"</svg> ([a-z]+)</button>", gallery.split("<figure")[0])
    assert names == ["vcpo", "tis"]
    alone = gallery.split('<figure id="figure-other">')[1]
    assert re.findall(r"</svg> ([a-z]+)</button>", alone) == ["ess", "lr"]
    assert '"methods":["vcpo","tis"]' in page


def test_print_has_a_file_of_each_legend(tmp_path: Path) -> None:
    first, second = _section(THREE, tmp_path)["blocks"]
    assert [one["caption"] for one in first["figures"]] == ["first", "second"]
    assert [one["caption"] for one in second["figures"]] == ["other"]
    assert len({first["legend"], second["legend"]}) == 2
    assert all((tmp_path / one["legend"]).read_text().startswith("<?xml") for one in (first, second))


def test_a_strip_is_as_wide_as_the_page_and_holds_its_entries() -> None:
    methods = [f"a-method-of-some-length(with={place})" for place in range(9)]
    with drawing(PRINT.font_size):
        figure = legend_strip(PRINT, methods)
        box = figure.legends[0].get_window_extent()
    assert figure.get_figwidth() == PRINT.width
    assert LEGEND_ROW * 7 / 72 * 3 <= figure.get_figheight() <= 1.0
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_figures_for_papers_keep_their_own_legend() -> None:
    assert all(sheet.legend for sheet in sheets("icml"))
    assert not PRINT.legend
