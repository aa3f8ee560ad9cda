"""`vcpo-bench analyze`."""

from pathlib import Path

import pytest
from command_line import call

from vcpo_bench.analysis.commands import ANALYSES


@pytest.mark.parametrize("kind", ANALYSES.names())
def test_analyzes(finished: Path, tmp_path: Path, kind: str) -> None:
    result = call("analyze", kind, str(finished), "--out", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "tables").glob("*.csv"))


def test_an_unknown_analysis_is_one_line_with_the_closest(finished: Path) -> None:
    result = call("analyze", "colapse", str(finished))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown analysis 'colapse'; did you mean collapse")
    assert result.stderr.count("\n") == 1
