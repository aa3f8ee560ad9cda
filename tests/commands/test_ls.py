"""`vcpo-bench ls`."""

from pathlib import Path

import pytest
from command_line import call


@pytest.mark.parametrize(("what", "shown"), [("methods", "vespo"), ("tasks", "walk-eos"), ("presets", "quick")])
def test_lists(what: str, shown: str) -> None:
    assert shown in call("ls", what).output


def test_list_of_runs(finished: Path) -> None:
    shown = call("ls", "runs", "--results", str(finished.parent)).output
    assert "3 completed" in shown
