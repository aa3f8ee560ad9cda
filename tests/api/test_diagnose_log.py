from collections.abc import Callable
from pathlib import Path

import vcpo_bench as vb
from vcpo_bench.analysis.diagnosis import read_run


def test_a_cell_is_diagnosed_from_its_path_and_from_what_was_read(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_results(tmp_path / "r", methods=("tis",), lags=(16,), seeds=(0,), steps=120, controls=False)
    (cell,) = (folder / "cells").iterdir()
    found = vb.diagnose(cell)
    assert found.outcome.verdict == vb.diagnose(read_run(cell)).outcome.verdict
    assert found.outcome.verdict == "collapsed"
    assert vb.diagnose(cell, baseline=cell).outcome.verdict == found.outcome.verdict
