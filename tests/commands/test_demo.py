"""`vcpo-bench demo`."""

import json
from pathlib import Path

import pytest
from command_line import call


@pytest.mark.slow
def test_tis_collapses_and_the_others_do_not(tmp_path: Path) -> None:
    shown = call("demo", "--out", str(tmp_path / "demo"))
    assert shown.exit_code == 0, shown.output
    assert "start policy of chain: held-out reward 0." in shown.output
    assert "tis: ends at 0.00, COLLAPSED at update" in shown.output
    board = {row["method"]: row for row in json.loads(call("show", str(tmp_path / "demo"), "--json").stdout)}
    assert {method: row["collapsed"] for method, row in board.items()} == {"tis": 1, "vcpo": 0, "vespo": 0}
    assert board["vcpo"]["final_reward"] > 0.8
