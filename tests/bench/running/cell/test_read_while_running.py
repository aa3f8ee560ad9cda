"""A cell that is running can be read from its first checkpoint on; before it, whoever follows it waits."""

from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.analysis.watching import Follower
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell as running
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.records.settings import CellSettings

SPEC = GridSpec(
    ("vcpo",), (1,), (0,), ("walk-eos",), settings=CellSettings(steps=6, prompts=2, responses=4), controls=False
)


def run_until(folder: Path, monkeypatch: pytest.MonkeyPatch, update: int) -> Path:
    """Kill a cell before an update, with a checkpoint after every one; returns its partial folder."""
    (cell,) = plan_grid(SPEC)
    real = Trainer.advance

    def advance(trainer: Trainer) -> Any:
        if trainer.step == update:
            raise KeyboardInterrupt
        return real(trainer)

    monkeypatch.setattr(running, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(Trainer, "advance", advance)
    with pytest.raises(KeyboardInterrupt):
        running.run_cell(cell, ResultsFolder(folder).cells, 0, lambda *_: None)
    monkeypatch.setattr(Trainer, "advance", real)
    return folder / "cells" / f"{cell.key}.partial"


def test_its_newest_checkpoint_says_which_cell_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = run_until(tmp_path, monkeypatch, 4)
    results = load(tmp_path, include_partial=True)
    (row,) = results.cells.to_dict("records")
    assert results.problems == []
    assert (row["status"], row["partial"], row["steps_done"]) == ("partial", True, 4)
    assert (row["method"], row["task"], row["staleness"], row["steps"]) == ("vcpo", "walk-eos", 1, 6)
    assert results.steps["step"].tolist() == [0, 1, 2, 3]
    assert "cell.json" in verify_sealed(partial / "checkpoint-00000004" / "state.json")["files"]
    follower = Follower(partial)
    assert follower.poll()
    assert follower.run is not None
    assert (follower.run.last_step, follower.ended) == (3, False)
    (cell,) = plan_grid(SPEC)
    assert running.run_cell(cell, tmp_path / "cells", 0, lambda *_: None) == "completed"
    assert follower.poll()  # under the name that the folder has now
    assert follower.ended


def test_before_its_first_checkpoint_it_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = run_until(tmp_path, monkeypatch, 0)
    partial.mkdir()  # the claim took it along
    follower = Follower(partial)
    assert not follower.poll()
    assert "can be read from its first checkpoint on" in follower.waiting
    with pytest.raises(UsageError, match="can be read from its first checkpoint on"):
        load(tmp_path, include_partial=True)
    run_until(tmp_path, monkeypatch, 2)
    assert follower.poll()


def test_beside_others_it_is_neither_shown_nor_damaged_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_until(tmp_path, monkeypatch, 2)
    (tmp_path / "cells" / "another.partial").mkdir()
    results = load(tmp_path, include_partial=True)
    assert (len(results.cells), results.problems) == (1, [])
