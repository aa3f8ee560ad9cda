"""`vcpo-bench analyze`."""

from pathlib import Path

import pytest
from command_line import call


@pytest.mark.parametrize("kind", ["weights", "gradients", "collapse", "compare", "prediction"])
def test_analyzes(finished: Path, tmp_path: Path, kind: str) -> None:
    result = call("analyze", kind, str(finished), "--out", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "tables").glob("*.csv"))
