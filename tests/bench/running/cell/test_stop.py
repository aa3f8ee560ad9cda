"""A cell ended by an observer: when, why, the same after a kill, and never taken for one that trained to its end."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell as running
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records.settings import CellSettings

pytestmark = pytest.mark.usefixtures("few_questions")

SETTINGS = CellSettings(steps=12, prompts=2, responses=4, stop="2.5")
SPEC = GridSpec(("clip",), (1,), (0,), ("walk-eos",), settings=SETTINGS, controls=False)


class SumOfEss:
    """Ends a cell when the ESS ratios it has seen sum to more than the limit: what it says depends on every row."""

    def __init__(self, limit: str) -> None:
        self.limit, self.seen = float(limit), 0.0

    def observe(self, row: Mapping[str, Any]) -> str:
        self.seen += row["ess_ratio"]
        return f"sum {self.seen} at step {row['step']}" if self.seen > self.limit else ""


def cell() -> PlannedCell:
    return plan_grid(SPEC)[0]


def run(folder: Path, planned: PlannedCell) -> tuple[str, dict[str, Any], list[float]]:
    status = run_cell(planned, ResultsFolder(folder).cells, 0, lambda *event: None, SumOfEss)
    ended = folder / "cells" / planned.key
    ess = pq.read_table(ended / "steps.parquet")["ess_ratio"].to_pylist()
    return status, json.loads((ended / "cell.json").read_text()), ess


def test_the_cell_ends_at_the_update_that_crossed_the_limit(tmp_path: Path) -> None:
    status, facts, ess = run(tmp_path, cell())
    assert status == facts["status"] == "stopped_by"
    assert facts["steps_done"] == len(ess) < SETTINGS.steps
    assert sum(ess[:-1]) <= 2.5 < sum(ess)
    assert facts["reason"] == f"sum {sum(ess)} at step {len(ess) - 1}"
    assert pq.read_table(tmp_path / "cells" / cell().key / "evals.parquet")["step"].to_pylist()[-1] == len(ess)


def test_an_alarm_at_the_last_update_cuts_nothing_off(tmp_path: Path) -> None:
    trainer = build_trainer(replace(cell().config, steps=2), observer=SumOfEss("1.5"))
    while not trainer.status:
        trainer.advance()
    assert trainer.stopped
    assert trainer.status == "completed"


@pytest.mark.parametrize("killed_at", [1, 2])
def test_killed_and_resumed_it_stops_at_the_same_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    monkeypatch.setattr(running, "CHECKPOINT_SECONDS", 0.0)
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    _, facts, ess = run(plain, cell())
    real = Trainer.advance

    def dies(trainer: Trainer) -> tuple[float, float]:
        if trainer.step == killed_at:
            raise KeyboardInterrupt
        return real(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", dies)
        with pytest.raises(KeyboardInterrupt):
            run(killed, cell())
    assert list((killed / "cells").glob("*.partial/checkpoint-*"))
    _, again, ess_again = run(killed, cell())
    assert (again["reason"], again["steps_done"], ess_again) == (facts["reason"], facts["steps_done"], ess)


def test_killed_after_it_kept_the_last_checkpoint_it_trains_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, facts, ess = run(tmp_path / "plain", cell())

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    killed = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(running, "finish", dies)
        with pytest.raises(KeyboardInterrupt):
            run_cell(cell(), ResultsFolder(killed).cells, 1, lambda *event: None, SumOfEss)
    _, again, ess_again = run(killed, cell())
    assert (again["reason"], again["steps_done"], ess_again) == (facts["reason"], facts["steps_done"], ess)


def test_step_scales_are_borrowed_from_a_cell_that_trains_to_its_end() -> None:
    settings = CellSettings(steps=5, stop="2.5")
    cells = plan_grid(GridSpec(("clip+lr-matched(to=vcpo)",), (4,), (0,), settings=settings, controls=False))
    assert {cell.config.method: cell.config.stop for cell in cells} == {"clip+lr-matched": "2.5", "vcpo": ""}


def test_a_cell_that_should_be_watched_is_not_run_unwatched(tmp_path: Path) -> None:
    status = run_cell(cell(), ResultsFolder(tmp_path).cells, 0, lambda *event: None)
    assert status == "error"
    assert "may be stopped" in json.loads((tmp_path / "cells" / cell().key / "cell.json").read_text())["reason"]
