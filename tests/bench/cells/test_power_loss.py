"""A power loss at any instant costs no checkpoint that was complete: a layer drops whatever was not synced."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lossy_disk import STATES, LossyDisk

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import status_of
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import verify_sealed, write_sealed

CONFIG = {"task": "chain", "method": "clip", "regime": "fifo", "staleness": 1, "lr": 3e-4, "seed": 0, "steps": 3}
CHANGES = 120
"""More changes of the file system than a life has."""


class PowerLossError(BaseException):
    """Nothing after it happens."""


def lose_power_before(change: int, patch: pytest.MonkeyPatch) -> None:
    """Raise before change number `change` of the file system."""
    left = iter(range(change))

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise PowerLossError
            return original(*arguments, **options)

        return counted

    for owner, name in ((Path, "rename"), (Path, "mkdir"), (shutil, "rmtree"), (os, "replace"), (os, "fsync")):
        patch.setattr(owner, name, guarded(getattr(owner, name)))


def save(folder: Path, step: int) -> None:
    (folder / "weights").write_bytes(bytes([step]) * 50)
    write_sealed(folder / "state.json", {"step": step})


def live(cells: Path, done: list[int]) -> None:
    """Train and end a cell; what is certainly saved is in `done`: the step of a checkpoint, or -1 for the end."""
    store = CellStore(cells, "a")
    with store.open():
        for step in (1, 2, 3):
            with store.checkpoint(step) as folder:
                save(folder, step)
            done.append(step)
        store.keep(3, lambda folder: save(folder, 3))
        with store.finish() as final:
            StepRecorder("basic").write(final)
            write_sealed(final / "cell.json", {"key": "a", "status": "completed", "config": CONFIG})
    done.append(-1)


def saved(cells: Path) -> int:
    """What is left: -1 for an ended cell, else the step of the newest checkpoint that can be used, else 0."""
    try:
        if status_of(cells / "a") == "completed":
            verify_sealed(cells / "a" / "cell.json")
            verify_sealed(cells / "a" / "checkpoints" / "00000003" / "state.json")
            return -1
    except DamagedResultError:
        pass
    for checkpoint in CellStore(cells, "a").checkpoints():
        try:
            return int(verify_sealed(checkpoint / "state.json")["step"])
        except DamagedResultError:
            continue
    return 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads synced files through /proc")
@pytest.mark.parametrize("unsynced", STATES)
def test_a_power_loss_costs_no_complete_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsynced: str
) -> None:
    lives = 0
    for at in range(CHANGES):
        cells, done = tmp_path / f"{at}", list[int]()
        cells.mkdir()
        with monkeypatch.context() as patch:
            disk = LossyDisk(cells, patch)
            lose_power_before(at, patch)
            try:
                live(cells, done)
                lives += 1
            except PowerLossError:
                pass
        left_over = saved(disk.after_power_loss(unsynced, tmp_path / f"{at}-after"))
        disk.close()
        expected = done[-1] if done else 0
        assert left_over == -1 or left_over >= expected >= 0, f"after change {at}: {left_over} left of {expected}"
        if lives:
            break
    assert lives, "raise CHANGES: not every change has been tried"
    assert at > 30


def test_the_layer_itself_forgets_what_was_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    with monkeypatch.context() as patch:
        disk = LossyDisk(tmp_path / "disk", patch)
        (tmp_path / "disk" / "new").write_text("x")
    left = [disk.after_power_loss(state, tmp_path / str(number)) for number, state in enumerate(STATES)]
    disk.close()
    assert [sorted(path.name for path in one.iterdir()) for one in left] == [[], [], ["new"]]
    assert (left[2] / "new").read_bytes() == b""
