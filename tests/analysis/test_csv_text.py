"""CSV files that spreadsheets open."""

import pandas as pd
import pytest

from vcpo_bench.analysis.csv_text import without_formulas


@pytest.mark.parametrize("kind", ["object", "string", "category"])
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_becomes_text(text: str, kind: str) -> None:
    table = pd.DataFrame({"name": pd.Series([text, "vcpo"], dtype=kind), text: [1, -2]})
    assert without_formulas(table).to_dict("list") == {"name": [f"'{text}", "vcpo"], f"'{text}": [1, -2]}


def test_numbers_and_gaps_stay_as_they_are() -> None:
    table = pd.DataFrame({"value": [-1.5, float("nan")], "mixed": [-1, None], "flag": [True, False]})
    pd.testing.assert_frame_equal(without_formulas(table), table)
