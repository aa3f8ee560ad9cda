"""The results folder under damage, rivals and interruptions."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import ResultsFolder, ended_keys, status_of
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files import claims
from vcpo_bench.files.checksums import read_sealed, write_sealed


def facts(key: str, status: str = "completed") -> dict[str, Any]:
    """What the `cell.json` of a cell must say."""
    config = {"task": "chain", "method": "clip", "regime": "fifo", "staleness": 1, "lr": 3e-4, "seed": 0, "steps": 1}
    return {"status": status, "key": key, "config": config}


def end_cell(folder: ResultsFolder, key: str, status: str = "completed") -> None:
    store = CellStore(folder.cells, key)
    recorder = StepRecorder("basic")
    recorder.tables["steps.parquet"].append({"step": 0, "sampled_reward": 0.5})
    with store.open(), store.finish() as final:
        recorder.write(final)
        write_sealed(final / "cell.json", facts(key, status))


def test_a_cell_is_ended_exactly_when_it_finished(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "r")
    assert folder.status("a") is None
    store = CellStore(folder.cells, "a")
    with store.open():
        with store.checkpoint(5) as draft:
            (draft / "x").touch()
        assert folder.status("a") is None
    end_cell(folder, "a")
    assert folder.status("a") == "completed"
    assert not store.partial.exists()
    assert ended_keys(tmp_path / "r") == {"a"}


def test_every_table_of_a_cell_without_checksums_is_looked_at(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    end_cell(folder, "a")
    (tmp_path / "cells" / "a" / "cell.json").write_text(json.dumps(facts("a")))  # as files were before checksums
    assert folder.status("a") == "completed"
    extra = tmp_path / "cells" / "a" / "samples.parquet"
    extra.write_bytes(b"PAR1 cut short")  # no table that every cell has
    with pytest.raises(DamagedResultError, match=r"samples\.parquet cannot be read"):
        folder.status("a")
    extra.unlink()
    (tmp_path / "cells" / "a" / "evals.parquet").unlink()  # one that every cell has
    with pytest.raises(DamagedResultError, match=r"evals\.parquet is missing"):
        folder.status("a")


def test_failed_cells_do_not_count_as_ended_well_and_are_replaced(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    end_cell(folder, "a", "error")
    assert ended_keys(tmp_path) == set()
    end_cell(folder, "a", "completed")
    assert folder.status("a") == "completed"


def test_only_the_newest_complete_checkpoint_is_kept(tmp_path: Path) -> None:
    store = CellStore(tmp_path, "a")
    with store.open():
        for step in (5, 10):
            with store.checkpoint(step) as draft:
                (draft / "step").write_text(str(step))
        with pytest.raises(KeyboardInterrupt), store.checkpoint(15) as draft:
            (draft / "step").write_text("half")
            raise KeyboardInterrupt
        latest = store.latest_checkpoint()
        assert latest is not None
        assert (latest / "step").read_text() == "10"
        assert len(list(store.partial.glob("checkpoint-*"))) == 1


class Killed(BaseException):
    """What a kill looks like from inside: nothing after it runs."""


STEPS_OF_A_LIFE = 40


def live(cells: Path, key: str, kill_at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Keep, checkpoint and finish a cell, killed before change number `kill_at` of the files; True if it lived."""
    left = iter(range(kill_at))
    with monkeypatch.context() as patch:
        for owner, name in ((Path, "rename"), (Path, "mkdir"), (shutil, "rmtree"), (os, "replace")):
            patch.setattr(owner, name, killing(getattr(owner, name), left))
        store = CellStore(cells, key)
        try:
            with store.open():
                if store.ended() is not None:
                    store.clear()
                    return True
                for step in (1, 2):
                    store.keep(step, lambda folder: (folder / "weights").touch())
                    with store.checkpoint(step) as folder:
                        (folder / "state").write_text(str(step))
                with store.finish() as final:
                    StepRecorder("basic").write(final)
                    write_sealed(final / "cell.json", facts(key))
        except Killed:
            return False
    return True


@pytest.mark.parametrize("kill_at", range(STEPS_OF_A_LIFE))
def test_a_kill_before_any_change_of_the_file_system_loses_nothing(
    tmp_path: Path, kill_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.5)  # what was killed while it claimed has left no holder to ask
    lived = live(tmp_path, "a", kill_at, monkeypatch)
    assert live(tmp_path, "a", 10_000, monkeypatch), "the next run must finish the cell"
    final = tmp_path / "a"
    assert status_of(final) == "completed"
    assert {p.name for p in (final / "checkpoints").iterdir()} == {"00000001", "00000002"}
    assert not (tmp_path / "a.partial").exists()
    if kill_at == STEPS_OF_A_LIFE - 1:
        assert lived, "raise STEPS_OF_A_LIFE: not every change has been tried"


def test_a_broken_grid_file_is_set_aside(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    (tmp_path / "grid.json").write_text("{")
    with folder.locked(wait=False):
        folder.update_grid({"a": {"control": False}})
    assert (tmp_path / "damaged-grid.json").read_text() == "{"
    assert list(read_sealed(tmp_path / "grid.json")["cells"]) == ["a"]


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda cell: (cell / "cell.json").write_text("{"), "cell.json cannot be read"),
        (lambda cell: (cell / "cell.json").write_text("{}"), "no legal status"),
        (lambda cell: (cell / "cell.json").write_text('{"status": "completed"}'), "does not say what was run"),
        (
            lambda cell: (cell / "steps.parquet").write_bytes(b"PAR1 not really"),
            "steps.parquet has 15 bytes",
        ),
        (lambda cell: (cell / "evals.parquet").unlink(), "evals.parquet is missing"),
    ],
)
def test_damage_is_named_and_set_aside(tmp_path: Path, break_it, said: str) -> None:
    folder = ResultsFolder(tmp_path)
    end_cell(folder, "a")
    break_it(folder.cells / "a")
    with pytest.raises(DamagedResultError, match=said):
        folder.status("a")
    aside = folder.set_aside("a")
    assert aside.is_dir()
    assert folder.status("a") is None
    end_cell(folder, "a")
    (folder.cells / "a" / "cell.json").unlink()
    assert folder.set_aside("a") != aside


def test_foreign_and_unwritable_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds other files"):
        ResultsFolder(tmp_path / "foreign")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write there"):
        ResultsFolder(tmp_path / "file" / "sub")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    with folder.locked(wait=False):
        with pytest.raises(UsageError, match="--wait"), ResultsFolder(tmp_path).locked(wait=False):
            pass
    with folder.locked(wait=False):
        pass


def test_a_cell_once_asked_for_is_no_mere_control(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    with folder.locked(wait=False):
        folder.update_grid({"a": {"control": True}, "b": {"control": False}})
        folder.update_grid({"a": {"control": False}, "b": {"control": True}, "c": {"control": True}})
    cells = read_sealed(tmp_path / "grid.json")["cells"]
    assert {key: entry["control"] for key, entry in cells.items()} == {"a": False, "b": False, "c": True}


def test_a_worker_waits_for_the_one_that_holds_the_cell(tmp_path: Path) -> None:
    order: list[str] = []
    first, second = CellStore(tmp_path, "a"), CellStore(tmp_path, "a")

    def wait() -> None:
        with second.open():
            order.append("second")

    thread = threading.Thread(target=wait)
    with first.open():
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_checkpoint_is_set_aside_as_often_as_it_is_damaged(tmp_path: Path) -> None:
    store = CellStore(tmp_path, "a")
    with store.open():
        for content in ("first", "second"):
            with store.checkpoint(5) as draft:
                (draft / "x").write_text(content)
            aside = store.set_checkpoint_aside(store.checkpoints()[0])
            assert (aside / "x").read_text() == content
            assert store.latest_checkpoint() is None


def test_a_killed_finish_of_a_failed_cell_loses_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kill_at in range(14):
        cells = tmp_path / str(kill_at)
        cells.mkdir()
        store, left = CellStore(cells, "a"), iter(range(kill_at))
        with store.open():
            store.keep(1, lambda folder: (folder / "state").touch())
            with store.checkpoint(2) as folder:
                (folder / "state").touch()
        with monkeypatch.context() as patch:
            for owner, name in ((Path, "rename"), (shutil, "rmtree"), (Path, "mkdir")):
                patch.setattr(owner, name, killing(getattr(owner, name), left))
            with suppress(Killed), store.open(), store.finish(failed=True) as final:
                StepRecorder("basic").write(final)
                write_sealed(final / "cell.json", facts("a", "error"))
        with store.open():
            found = [path.name for path in store.checkpoints() if (path / "state").exists()]
        assert found == ["checkpoint-00000002", "00000001"], kill_at
    assert next(left, None) is not None, "not every change has been tried"


def killing(original: Callable[..., Any], left: Iterator[int]) -> Callable[..., Any]:
    """The same function, but killed once `left` is used up."""

    def change(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None:
            raise Killed
        return original(*arguments, **options)

    return change
