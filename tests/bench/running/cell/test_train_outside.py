"""Cells of a trainer in processes of its own: followed, resumed, started again, and refused."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stand_in_trainer
from stand_in_trainer import TABLES_OF

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import status_of
from vcpo_bench.bench.python_processes import SAFE_PATH
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.stack.eligible import why_not_stacked
from vcpo_bench.bench.trainers.catalog import TRAINERS, OutsideTrainer
from vcpo_bench.bench.trainers.job import FOLLOWS, Progress, TrainerJob
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import verify_sealed
from vcpo_bench.naming.parameters import integer

UPDATES = 5


@dataclass(frozen=True, kw_only=True)
class StandIn(OutsideTrainer):
    """Its process is `stand_in_trainer`.

    Attributes:
        dies: Update before which the process is killed, unless it has gone on from a checkpoint; 0: none.
        fails: Update that raises an error; 0: none.
    """

    name = "stand-in"
    summary = "hands out tables that were made before"
    dies: int = integer(0, minimum=0)
    fails: int = integer(0, minimum=0)

    def command(self, job: Path) -> list[str]:
        return [sys.executable, stand_in_trainer.__file__, str(job), str(self.dies), str(self.fails)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a real cell after each of its updates."""
    folder = tmp_path_factory.mktemp("tables")
    trainer = build_trainer(CellConfig(method="clip", staleness=0, seed=0, steps=UPDATES, prompts=2, eval_prompts=4))
    while not trainer.status:
        trainer.advance()
        (folder / str(trainer.step)).mkdir()
        trainer.recorder.write(folder / str(trainer.step))
    return folder


@pytest.fixture(autouse=True)
def _stand_in(made: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(TABLES_OF, str(made))
    TRAINERS.add(StandIn, "this test")
    yield
    TRAINERS.forget()


def planned(trainer: str) -> PlannedCell:
    config = CellConfig(method="clip", staleness=0, seed=0, trainer=trainer, steps=UPDATES)
    return PlannedCell(config, config.key(config.parts.method.version), False, 1.0, UPDATES, Path("start"))


def run(cell: PlannedCell, cells: Path, keep_every: int = 0) -> list[tuple[Any, ...]]:
    """The events of a cell that is run to its end."""
    cells.mkdir(exist_ok=True)
    events: list[tuple[Any, ...]] = []
    run_cell(cell, cells, keep_every, lambda *event: events.append(event))
    return events


def said(events: list[tuple[Any, ...]]) -> list[str]:
    return [str(event[1]) for event in events if event[0] == "message"]


def test_they_are_not_stacked() -> None:
    assert why_not_stacked(planned("stand-in").config) == "its trainer trains in processes of its own"
    assert not why_not_stacked(planned("own").config)


def test_a_cell_ends_with_the_tables_and_checkpoints_of_its_processes(tmp_path: Path) -> None:
    cell = planned("stand-in")
    events = run(cell, tmp_path / "cells", keep_every=2)
    folder = tmp_path / "cells" / cell.key
    assert status_of(folder) == "completed"
    assert json.loads((folder / "cell.json").read_text())["steps_done"] == UPDATES
    assert events[-1][:3] == ("ended", cell.key, "completed")
    assert {event[2] for event in events if event[0] == "progress"} <= set(range(1, UPDATES + 1))
    kept = sorted((folder / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["00000002", "00000004"]
    for path in kept:
        assert verify_sealed(path / "state.json")["step"] == int(path.name)
        assert (path / "weights").read_text() == f"after {int(path.name)}"
    assert [path.name for path in (tmp_path / "cells").iterdir()] == [cell.key], "nothing is left behind"


def test_processes_that_die_are_started_again_from_the_newest_checkpoint(tmp_path: Path) -> None:
    cell = planned("stand-in(dies=4)")
    events = run(cell, tmp_path / "cells")
    assert status_of(tmp_path / "cells" / cell.key) == "completed"
    (line,) = said(events)
    assert "its processes died (exit code -9); starting again" in line


def test_processes_that_always_die_end_the_cell(tmp_path: Path) -> None:
    cell = planned("stand-in(dies=1)")
    events = run(cell, tmp_path / "cells")
    assert events[-1][2] == "error"
    assert "ended with exit code -9" in events[-1][4]
    assert len(said(events)) == 2, "three tries"
    error = json.loads((tmp_path / "cells" / cell.key / "cell.json").read_text())["error"]
    assert "a line of the log" in error


def test_an_error_is_told_at_once_and_running_again_resumes(tmp_path: Path) -> None:
    cell = planned("stand-in(fails=4)")
    events = run(cell, tmp_path / "cells")
    assert (events[-1][2], events[-1][4]) == ("error", "ValueError: update 4 failed")
    assert not said(events)
    folder = tmp_path / "cells" / cell.key
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-00000003"]
    assert status_of(folder) == "error"


def test_a_damaged_checkpoint_is_moved_aside(tmp_path: Path) -> None:
    cell = planned("stand-in(fails=4)")
    run(cell, tmp_path / "cells")
    weights = tmp_path / "cells" / cell.key / "checkpoint-00000003" / "weights"
    weights.write_text("other")
    assert "checkpoint moved to damaged-checkpoint-00000003" in said(run(cell, tmp_path / "cells"))[0]


def test_only_one_process_has_a_cell(tmp_path: Path) -> None:
    cell = planned("stand-in")
    (tmp_path / "cells").mkdir()
    store = CellStore(tmp_path / "cells", cell.key)
    with store.open():
        assert store.scratch().parent == store.partial
        assert not any(store.scratch().iterdir())


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    job = TrainerJob(key="k", config={"lr": 1e-3}, updates=3, model="m", plugins=("a.py",), keep_every=2)
    assert TrainerJob.read(job.write(tmp_path)) == job
    assert Progress.read(tmp_path) == Progress()
    told = Progress(step=2, reward=0.5, ess=0.9, checkpoint=1, status="completed", stopped="", error="", usage=True)
    told.write(tmp_path)
    assert Progress.read(tmp_path) == told


FAMILY = """
import subprocess, sys, time
from pathlib import Path
from vcpo_bench.bench.trainers.job import carry_out
def train(job):
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
    time.sleep(600)
carry_out(train, Path("job.json"))
"""


def test_processes_end_with_the_worker_and_all_that_they_have_started() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", FAMILY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, FOLLOWS: "1"},
        start_new_session=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert int(process.stdout.readline())
        process.stdin.close()
        assert process.stdout.read() == b"", "the grandchild holds the other end as long as it lives"
    assert process.returncode == -signal.SIGKILL


def test_a_process_that_fails_ends_with_the_exit_code_of_an_error(tmp_path: Path) -> None:
    imports = "from pathlib import Path; from vcpo_bench.bench.trainers.job import carry_out"
    program = f"{imports}; carry_out(len, Path('job.json'))"
    environment = {**os.environ, FOLLOWS: "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=tmp_path
    )
    with process:
        assert process.stderr is not None
        assert b"TypeError" in process.stderr.read(), "while its worker lives"
        assert process.wait() == 1
    assert Progress.read(tmp_path).error.startswith("TypeError: ")


def test_our_own_loop_starts_no_process() -> None:
    own = TRAINERS.parse("own")
    assert not isinstance(own, OutsideTrainer)
    assert own.ranks == 1
    with pytest.raises(UsageError, match="oown"):
        TRAINERS.parse("oown")


def test_processes_import_nothing_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SAFE_PATH, raising=False)
    monkeypatch.setattr(StandIn, "command", lambda self, job: [sys.executable, "-m", "planted"])
    cell = planned("stand-in")
    run(cell, tmp_path / "cells")
    error = json.loads((tmp_path / "cells" / cell.key / "cell.json").read_text())["error"]
    assert "No module named planted" in error
