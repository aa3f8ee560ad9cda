"""LaTeX tables that fit. `.ci/integrations latex` compiles them; widths here are those of Computer Modern."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.formatting import MISSING
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.tex import booktabs
from vcpo_bench.reports.writers.tex_tables import LONGEST, SIZES, choose, parts, without_constants
from vcpo_bench.reports.writers.tex_text import escape, prose


def table(rows: list[list[str]], numeric: frozenset[int] = frozenset(), settings: int = 1) -> Table:
    headings = [f"h{i}" for i in range(len(rows[0]))]
    return Table(
        "t", "What it holds.", headings, [[TableCell(text) for text in row] for row in rows], numeric, settings
    )


def test_a_narrow_table_takes_one_column_a_wider_one_both_and_the_widest_is_scaled() -> None:
    narrow = choose(table([["vcpo", "0.5"]]), 3.25, 6.75)
    assert (narrow.wide, narrow.scaled, narrow.size) == (False, False, SIZES[0])
    wide = choose(table([["clip(high=0.28)"] * 5]), 3.25, 6.75)
    assert (wide.wide, wide.scaled) == (True, False)
    widest = choose(table([["x" * 60] * 5]), 3.25, 6.75)
    assert (widest.wide, widest.scaled) == (True, True)
    assert not choose(table([["clip(high=0.28)"] * 5]), 5.5, 5.5).wide, "there is one column only"


def test_a_scaled_table_is_exactly_as_wide_as_the_text() -> None:
    text = booktabs(table([[str(i) + "x" * 90, str(i) + "y" * 90] for i in range(2)]))
    assert r"\resizebox{\linewidth}{!}{%" in text
    assert r"\end{tabular}}" in text
    assert "graphicx" in text.splitlines()[0]
    assert r"\begin{table*}" in text


def test_settings_that_all_rows_share_are_said_once() -> None:
    lean, said = without_constants(table([["chain", "1", "0.5"], ["chain", "16", "0.4"]], frozenset({1, 2})))
    assert lean.headings == ["h1", "h2"]
    assert lean.numeric == frozenset({0, 1})
    assert said == "h0 chain"
    assert "In all rows: h0 chain." in booktabs(table([["chain", "1"], ["chain", "16"]]))
    assert without_constants(table([["a", "", "\u2013"], ["b", "", "\u2013"]], settings=3))[1] == "", (
        "nothing is said of empty columns"
    )
    assert without_constants(table([["chain", "1"]]))[0].headings == ["h0", "h1"], "one row has no constants"


def test_results_stay_where_all_rows_agree() -> None:
    """A grid of one method had a ranking of two columns, `lag` and `method`, and a caption on the others."""
    lean, said = without_constants(table([["vcpo", "0.5 [0.4, 0.6]", "0"], ["vcpo", "0.5 [0.4, 0.6]", "0"]]))
    assert lean.headings == ["h1", "h2"]
    assert said == "h0 vcpo"


def test_no_table_of_a_report_loses_a_result(study: Study) -> None:
    """Whatever carries an id, an interval or a count is no setting."""
    tables = [block for section in build(study).sections for block in section.blocks if isinstance(block, Table)]
    assert len(tables) > 5
    for one in tables:
        results = {place for row in one.rows for place, entry in enumerate(row) if entry.number}
        assert all(place >= one.settings for place in results), one.name
        assert not any("95%" in heading or "collapsed" in heading for heading in one.headings[: one.settings]), one.name
        alike = replace(one, rows=[one.rows[0]] * 2)
        told = [i for i, entry in enumerate(one.rows[0]) if entry.text.strip() not in ("", MISSING)]
        kept = without_constants(alike)[0].headings
        assert kept == [one.headings[i] for i in told if i >= one.settings], one.name


@pytest.mark.parametrize("count", [1, LONGEST, LONGEST + 1, 3 * LONGEST + 5])
def test_a_long_table_becomes_floats_that_fit_a_page(count: int) -> None:
    rows = [[str(i), str(i % 7)] for i in range(count)]
    pieces = parts(table(rows), choose(table(rows), 3.25, 6.75))
    assert [row for piece in pieces for row in piece.rows] == table(rows).rows
    assert max(len(piece.rows) for piece in pieces) <= LONGEST
    text = booktabs(table(rows))
    assert text.count(r"\begin{table}") == len(pieces)
    assert text.count(r"\label{tab:t}") == 1
    assert ("(part 2 of " in text) == (len(pieces) > 1)


def test_the_widest_text_is_wrapped_and_counts_its_lines() -> None:
    long = table([["1", "word " * 90], ["2", "words " * 200]], frozenset({0}))
    how = choose(long, 3.25, 6.75)
    assert (how.wide, how.scaled, how.wrapped) == (True, False, 1)
    assert how.lines(["2", "words " * 200]) > how.lines(["1", "word " * 90]) > 1
    text = booktabs(long)
    assert r"{r>{\raggedright\arraybackslash}p{" in text
    assert "array" in text.splitlines()[0]


def test_letters_that_latex_would_change_or_lacks() -> None:
    assert escape("--x ''y'' \u4e2d \u2264 \u00b1") == r"-{}-x '{}'y'{}' [U+4E2D] $\le$ $\pm$"
    assert prose("run `show a-b_c --x` now") == (
        r"run \texttt{show a-\allowbreak b\_\allowbreak c -{}-\allowbreak x} now"
    )
