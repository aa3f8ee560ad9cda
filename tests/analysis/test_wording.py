"""How numbers and names are worded."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from vcpo_bench.analysis.csv_text import without_formulas
from vcpo_bench.analysis.wording import (
    counted,
    fixed,
    interval_of,
    label,
    learning_rate,
    listed,
    p_value,
    percent,
    rounded_rate,
    row_by_row,
    span,
    verdict,
    with_interval,
)

GROUPS = pd.DataFrame({"task": "chain", "method": ["vcpo", "tis", "clip"], "lr": 3e-4, "ess": [0.99, 0.26, math.nan]})


def test_values_stand_with_their_interval() -> None:
    assert with_interval(0.12, 0.034, 0.206) == "0.12 [0.03, 0.21]"
    assert with_interval(-0.5, math.nan, math.nan, 1) == "-0.5"
    assert with_interval(math.nan, 0.0, 1.0) == "unknown"
    assert interval_of({"value": 1.0, "low": 0.5, "high": math.inf}) == "1.00 [0.50, inf]"
    assert interval_of({"iqm": 1.0, "iqm_low": -0.001, "iqm_high": 2.0}, "iqm") == "1.00 [0.00, 2.00]"
    assert (fixed(-0.004), fixed(-0.006)) == ("0.00", "-0.01")


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.1, 0.2, "more"), (-2, -1, "less"), (-1, 1, "cannot be told apart")]
)
def test_an_interval_that_includes_the_null_decides_nothing(low: float, high: float, word: str) -> None:
    assert verdict(low, high) == word


def test_groups_are_named_by_what_the_table_has_several_of() -> None:
    assert label(GROUPS.iloc[0], GROUPS) == "vcpo"
    several = GROUPS.assign(task=["chain", "walk", "walk"], lr=[1e-4, 3e-4, 3e-4])
    assert label(several.iloc[1], several) == "tis on walk with learning rate 3e-4"


def test_a_span_names_its_ends_unless_they_agree() -> None:
    assert span(GROUPS, GROUPS, "ess", ".2f") == "0.26 (tis) to 0.99 (vcpo)"
    assert span(GROUPS, GROUPS, "ess", ".0f") == "0 (tis) to 1 (vcpo)"
    assert span(GROUPS.head(1), GROUPS, "ess", ".2f") == "0.99"
    assert span(GROUPS.tail(1), GROUPS, "ess", ".2f") == "unknown"


def test_small_shares_and_p_values_are_not_rounded_to_nothing() -> None:
    assert [percent(share) for share in (0.0, 0.002, 0.126, 1.0)] == ["0%", "<1%", "13%", "100%"]
    assert [p_value(p) for p in (1e-9, 0.0123, 0.5)] == ["p < 0.001", "p = 0.012", "p = 0.5"]


def test_counts_lists_and_learning_rates() -> None:
    assert [counted(number, "cell") for number in (0, 1, 2)] == ["no cells", "1 cell", "2 cells"]
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert [learning_rate(lr) for lr in (3e-4, 2.5e-5, 0.05, 1.0)] == ["3e-4", "2.5e-5", "0.05", "1"]
    close = (1.2341e-4, 1.2342e-4, 1e-4 / 3, 0.1 + 0.2, 3.334e-5)
    assert len({learning_rate(lr) for lr in close}) == len(close)
    assert [float(learning_rate(lr)) for lr in close] == list(close)
    assert rounded_rate(1.2341e-4) == "1.23e-4"


def test_rows_keep_their_numbers() -> None:
    parts = list(row_by_row(GROUPS[GROUPS["ess"].notna()].iloc[::-1]))
    assert [(list(part.index), row["method"]) for part, row in parts] == [([1], "tis"), ([0], "vcpo")]


@pytest.mark.parametrize("kind", ["object", "string", "category"])
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_becomes_text(text: str, kind: str) -> None:
    table = pd.DataFrame({"name": pd.Series([text, "vcpo"], dtype=kind), text: [1, -2]})
    assert without_formulas(table).to_dict("list") == {"name": [f"'{text}", "vcpo"], f"'{text}": [1, -2]}


def test_numbers_and_gaps_stay_as_they_are() -> None:
    table = pd.DataFrame({"value": [-1.5, float("nan")], "mixed": [-1, None], "flag": [True, False]})
    pd.testing.assert_frame_equal(without_formulas(table), table)
