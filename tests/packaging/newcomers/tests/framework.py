"""The names of its logs are known."""

from vcpo_bench.analysis.logs.names import find_framework


def test_its_logs_are_recognized() -> None:
    found = find_framework("auto", ["train/newcomer/loss", "train/newcomer/reward"])
    assert found is not None
    assert found.name == "newcomer"
