"""LaTeX tables that fit. No LaTeX runs here: widths are those of Computer Modern."""

from __future__ import annotations

import pytest

from vcpo_bench.reports.document import Entry, Table
from vcpo_bench.reports.writers.tex import booktabs
from vcpo_bench.reports.writers.tex_tables import LONGEST, SIZES, choose, parts, without_constants


def table(rows: list[list[str]], numeric: frozenset[int] = frozenset()) -> Table:
    headings = [f"h{i}" for i in range(len(rows[0]))]
    return Table("t", "What it holds.", headings, [[Entry(text) for text in row] for row in rows], numeric)


def test_a_narrow_table_takes_one_column_a_wider_one_both_and_the_widest_is_scaled() -> None:
    narrow = choose(["method", "reward"], [["vcpo", "0.5"]], 3.25, 6.75)
    assert (narrow.wide, narrow.scaled, narrow.size) == (False, False, SIZES[0])
    wide = choose(["method"] * 5, [["clip(high=0.28)"] * 5], 3.25, 6.75)
    assert (wide.wide, wide.scaled) == (True, False)
    widest = choose(["method"] * 5, [["x" * 60] * 5], 3.25, 6.75)
    assert (widest.wide, widest.scaled) == (True, True)
    assert not choose(["method"] * 5, [["clip(high=0.28)"] * 5], 5.5, 5.5).wide, "there is one column only"


def test_a_scaled_table_is_exactly_as_wide_as_the_text() -> None:
    text = booktabs(table([[str(i) + "x" * 90, str(i) + "y" * 90] for i in range(2)]))
    assert r"\resizebox{\linewidth}{!}{%" in text
    assert r"\end{tabular}}" in text
    assert "graphicx" in text.splitlines()[0]
    assert r"\begin{table*}" in text


def test_what_all_rows_share_is_said_once() -> None:
    lean, said = without_constants(table([["chain", "1", "0.5"], ["chain", "16", "0.4"]], frozenset({1, 2})))
    assert lean.headings == ["h1", "h2"]
    assert lean.numeric == frozenset({0, 1})
    assert said == "h0 chain"
    assert "In all rows: h0 chain." in booktabs(table([["chain", "1"], ["chain", "16"]]))
    assert without_constants(table([["chain", "1"]]))[0].headings == ["h0", "h1"], "one row has no constants"
    assert without_constants(table([["a"], ["a"]]))[0].headings == ["h0"], "a table keeps a column"


@pytest.mark.parametrize("count", [1, LONGEST, LONGEST + 1, 3 * LONGEST + 5])
def test_a_long_table_becomes_floats_that_fit_a_page(count: int) -> None:
    rows = [[str(i), str(i % 7)] for i in range(count)]
    pieces = parts(table(rows))
    assert [row for piece in pieces for row in piece.rows] == table(rows).rows
    assert max(len(piece.rows) for piece in pieces) <= LONGEST
    text = booktabs(table(rows))
    assert text.count(r"\begin{table}") == len(pieces)
    assert text.count(r"\label{tab:t}") == 1
    assert ("(part 2 of " in text) == (len(pieces) > 1)
