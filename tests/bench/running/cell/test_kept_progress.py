"""What a cell keeps when something fails: a transient error costs no checkpoint, a damaged one costs only itself."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.feeding.source import PlannedSource
from vcpo_bench.bench.running.cell import run_cell as running
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.files import checksums
from vcpo_bench.records.settings import CellSettings

pytestmark = pytest.mark.usefixtures("few_questions")

STEPS = 6
SPEC = GridSpec(
    ("vcpo",), (1,), (0,), ("walk-eos",), settings=CellSettings(steps=STEPS, prompts=2, responses=4), controls=False
)
Events = list[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def _a_checkpoint_at_every_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CHECKPOINT_SECONDS", 0.0)

    def impatient(trainer: Trainer, cell: PlannedCell, store: CellStore, keep_every: int, emit: Any) -> None:
        while not trainer.status:
            trainer.advance()
            if keep_every and trainer.step % keep_every == 0:
                store.keep(trainer.step, trainer.save)
            if not trainer.status:
                with store.checkpoint(trainer.step) as folder:
                    running.save_checkpoint(cell, trainer, folder)

    monkeypatch.setattr(running, "_train", impatient)


def run(folder: Path, keep_every: int = 0) -> tuple[str, Events]:
    events: Events = []
    (cell,) = plan_grid(SPEC)
    return run_cell(cell, ResultsFolder(folder).cells, keep_every, lambda *event: events.append(event)), events


def began_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The updates from which cells train, in the order they are trained."""
    seen: list[int] = []
    real = Trainer.advance

    def noting(trainer: Trainer) -> tuple[float, float]:
        seen.append(trainer.step)
        return real(trainer)

    monkeypatch.setattr(Trainer, "advance", noting)
    return seen


def fail_at(monkeypatch: pytest.MonkeyPatch, step: int, problem: Exception) -> Callable[[], None]:
    real = PlannedSource.next_batch
    armed = [True]

    def failing(source: PlannedSource, update: int) -> Any:
        if update == step and armed[0]:
            raise problem
        return real(source, update)

    monkeypatch.setattr(PlannedSource, "next_batch", failing)
    return lambda: armed.__setitem__(0, False)


def rewards(folder: Path) -> list[float]:
    (cell,) = plan_grid(SPEC)
    return pq.read_table(folder / "cells" / cell.key / "steps.parquet")["grad_norm"].to_pylist()


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.EIO, os.strerror(errno.EIO)),
        pytest.param(ConnectionError("vLLM is away"), marks=pytest.mark.slow),
        pytest.param(RuntimeError("CUDA out of memory"), marks=pytest.mark.slow),
        MemoryError(),
    ],
)
def test_after_an_error_the_same_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    repaired = fail_at(monkeypatch, 4, problem)
    status, _ = run(tmp_path / "r", keep_every=2)
    (cell,) = plan_grid(SPEC)
    folder = tmp_path / "r" / "cells" / cell.key
    facts = json.loads((folder / "cell.json").read_text())
    assert (status, facts["status"], facts["steps_done"]) == ("error", "error", 4)
    assert not folder.with_name(f"{cell.key}.partial").exists(), "nothing is running"
    repaired()
    steps = began_at(monkeypatch)
    assert run(tmp_path / "r", keep_every=2)[0] == "completed"
    assert steps == [4, 5]
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"checkpoints"}
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"00000002", "00000004", "00000006"}
    assert run(tmp_path / "through")[0] == "completed"
    assert rewards(tmp_path / "r") == rewards(tmp_path / "through")


def test_an_error_twice_keeps_the_checkpoint_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repaired = fail_at(monkeypatch, 3, OSError(errno.EIO, "Input/output error"))
    assert run(tmp_path)[0] == run(tmp_path)[0] == "error"
    repaired()
    steps = began_at(monkeypatch)
    assert run(tmp_path)[0] == "completed"
    assert steps == [3, 4, 5]


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, at: int, keep_every: int = 0) -> Path:
    """Kill the cell before update `at`; returns its partial folder."""
    with monkeypatch.context() as patch:
        fail_at(patch, at, KeyboardInterrupt())  # type: ignore[arg-type]
        with pytest.raises(KeyboardInterrupt):
            run(folder, keep_every)
    (partial,) = (folder / "cells").glob("*.partial")
    return partial


def test_a_disk_that_does_not_answer_while_resuming_costs_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path, monkeypatch, 4)
    real = checksums.open_regular

    def broken(path: Path) -> Any:
        if path.name == "state.safetensors":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(checksums, "open_regular", broken)
        assert run(tmp_path)[0] == "error"
    steps = began_at(monkeypatch)
    assert run(tmp_path)[0] == "completed"
    assert steps == [4, 5]


@pytest.mark.parametrize("name", ["state.safetensors", "state.json", "steps.parquet"])
def test_a_flipped_bit_costs_the_newest_checkpoint_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    partial = interrupted(tmp_path, monkeypatch, 4, keep_every=3)
    victim = partial / "checkpoint-00000004" / name
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 4
    victim.write_bytes(content)
    steps = began_at(monkeypatch)
    status, events = run(tmp_path, keep_every=3)
    assert (status, steps) == ("completed", [3, 4, 5])
    (line,) = [event[1] for event in events if event[0] == "message"]
    assert "checkpoint moved to damaged-checkpoint-00000004" in line
    assert name in line
    assert line.endswith("resuming from update 3")
    assert str(tmp_path) not in line


def test_a_checkpoint_of_another_cell_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = interrupted(tmp_path, monkeypatch, 3)
    other = plan_grid(GridSpec(("clip",), (1,), (1,), ("walk-eos",), settings=SPEC.settings, controls=False))[0]
    partial.rename(partial.with_name(f"{other.key}.partial"))
    events: Events = []
    steps = began_at(monkeypatch)
    assert run_cell(other, tmp_path / "cells", 0, lambda *event: events.append(event)) == "completed"
    assert steps == list(range(STEPS))
    (line,) = [event[1] for event in events if event[0] == "message"]
    assert f"is a checkpoint of {plan_grid(SPEC)[0].key}, not of {other.key}" in line
    assert line.endswith("starting from scratch")


def test_a_damaged_donor_of_step_scales_is_named(tmp_path: Path) -> None:
    spec = GridSpec(("clip+lr-matched(to=vcpo)",), (1,), (0,), ("walk-eos",), settings=SPEC.settings, controls=False)
    donor, cell = sorted(plan_grid(spec), key=lambda one: bool(one.config.series))
    folder = ResultsFolder(tmp_path)
    assert run_cell(donor, folder.cells, 0, lambda *_: None) == "completed"
    steps = bytearray((folder.cells / donor.key / "steps.parquet").read_bytes())
    steps[100] ^= 1
    (folder.cells / donor.key / "steps.parquet").write_bytes(steps)
    assert run_cell(cell, folder.cells, 0, lambda *_: None) == "error"
    reason = json.loads((folder.cells / cell.key / "cell.json").read_text())["reason"]
    assert "steps.parquet does not match its checksum" in reason


def test_the_recorded_error_names_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(monkeypatch, 1, FileNotFoundError(errno.ENOENT, "No such file", str(tmp_path / "my secret" / "model.bin")))
    assert run(tmp_path)[0] == "error"
    (path,) = (tmp_path / "cells").glob("*/cell.json")
    facts = json.loads(path.read_text())
    assert facts["reason"].endswith("No such file: '.../model.bin'")
    assert 'File "vcpo_bench/bench/running/cell/run_cell.py"' in facts["error"]
    for word in (str(tmp_path), "my secret", str(Path.home()), "site-packages"):
        assert word not in path.read_text()
