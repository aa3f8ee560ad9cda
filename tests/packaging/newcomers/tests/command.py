"""The command runs."""

from command_line import call


def test_it_runs() -> None:
    assert call("newcomer").exit_code == 0
