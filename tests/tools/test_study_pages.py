"""Tables and parts of the pages of studies."""

from pathlib import Path

import pandas as pd
import pytest
from made_pages import assert_alike, same_text
from study_pages.markdown_table import markdown, number
from study_pages.markers import filled


def test_an_interval_is_one_column_and_names_of_commands_are_code() -> None:
    rows = [{"rule": "tis", "mean_reward": 0.5, "low": 0.25, "high": float("nan"), "low90": 0.3, "p": 0.1, "lr": 2e-4}]
    assert markdown(pd.DataFrame(rows)).splitlines() == [
        "| rule | mean reward | 95% | lr |",
        "|---|---|---|---|",
        "| `tis` | 0.50 |  | 0.0002 |",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.004321, "0.0043"), (-1.234, "-1.23"), (123.4, "123"), (float("inf"), "open"), (float("nan"), "")],
)
def test_numbers_have_the_digits_that_say_something(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_part_is_replaced_between_its_marks_only() -> None:
    page = "before\n<!-- made by tools/x.py: a -->\nold\n<!-- end -->\nafter\n"
    made = filled(page, {"a": "new"}, "tools/x.py")
    assert made == "before\n<!-- made by tools/x.py: a -->\n\nnew\n<!-- end -->\nafter\n"
    assert filled(made, {"a": "new"}, "tools/x.py") == made
    with pytest.raises(ValueError, match="no line"):
        filled(page, {"a": "new"}, "tools/y.py")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.12 [0.03, open], **more**", "0.13 [0.03, open], **more**", True),
        ("0.12 [0.03, open], **more**", "0.14 [0.03, open], **more**", False),
        ("0.12 [0.03, 0.3], **more**", "0.12 [0.03, 0.3], **less**", False),
        ("over 1.2e-4", "over 1.3e-4", True),
        ("over 1.2e-4", "over 1.2e-3", False),
        ("4 of 8 pairs, 64 times", "4 of 8 pairs, 63 times", False),
        ("300 updates, 0.5", "299 updates, 0.5", False),
        ("4 of 8 pairs, 64 times", "5 of 8 pairs, 64 times", False),
        ("0.004", "0", False),
        ("-0.01", "0.00", True),
    ],
)
def test_pages_may_differ_by_the_rounding_of_a_number_alone(one: str, other: str, same: bool) -> None:
    assert same_text(one, other) is same


def test_tables_may_differ_by_the_last_bits_alone(tmp_path: Path) -> None:
    made, there = tmp_path / "made.csv", tmp_path / "there.csv"
    table = pd.DataFrame({"seeds": [4, 4], "low": [-0.25, float("inf")], "verdict": ["more", "less"]})
    table.to_csv(made, index=False)
    table.assign(low=table["low"] * (1 + 1e-6)).to_csv(there, index=False)
    assert_alike(made, there, "tool")
    for other in (table.assign(seeds=[4, 5]), table.assign(low=[-0.26, float("inf")]), table[["seeds", "low"]]):
        other.to_csv(there, index=False)
        with pytest.raises(AssertionError):
            assert_alike(made, there, "tool")
