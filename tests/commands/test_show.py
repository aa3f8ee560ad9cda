"""`vcpo-bench show`."""

import json
from pathlib import Path

from command_line import call


def test_show_and_json(finished: Path) -> None:
    shown = call("show", str(finished), "--json")
    assert shown.exit_code == 0
    board = json.loads(shown.stdout)
    assert {row["method"] for row in board} == {"clip", "reinforce"}


def test_show_of_nothing_is_a_clear_error(tmp_path: Path) -> None:
    result = call("show", str(tmp_path))
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_method_is_described_with_its_curve() -> None:
    shown = call("show", "method", "vespo").output
    assert "k_pos=2" in shown
    assert "2602.10693" in shown
    assert shown.count("|") > 10
    missing = call("show", "method", "vspo")
    assert missing.exit_code == 2
    assert "vespo" in missing.stderr
