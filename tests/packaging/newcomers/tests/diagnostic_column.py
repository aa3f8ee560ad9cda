"""The column is recorded."""

from vcpo_bench.records.steps import DIAGNOSTICS


def test_it_is_a_column() -> None:
    assert DIAGNOSTICS["newcomer"].unit == "count"
