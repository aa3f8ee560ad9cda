"""Tables and parts of the pages of studies."""

import pandas as pd
import pytest
from study_pages.markdown_table import markdown, number
from study_pages.markers import filled


def test_an_interval_is_one_column_and_names_of_commands_are_code() -> None:
    rows = [{"rule": "tis", "mean_reward": 0.5, "low": 0.25, "high": float("nan"), "low90": 0.3, "p": 0.1, "lr": 2e-4}]
    assert markdown(pd.DataFrame(rows)).splitlines() == [
        "| rule | mean reward | 95% | lr |",
        "|---|---|---|---|",
        "| `tis` | 0.50 | [0.25, ] | 0.0002 |",
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
