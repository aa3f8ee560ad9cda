"""The command runs."""

from command_line import call


def test_it_runs() -> None:
    assert call("lab", "newcomer").exit_code == 0
