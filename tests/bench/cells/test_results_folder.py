"""The results folder under damage, rivals and interruptions."""

import json
import os
import shutil
from pathlib import Path

import pytest

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import ResultsFolder, damage, ended_keys, read_json, write_json
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.errors import DamagedResultError, UsageError


def end_cell(folder: ResultsFolder, key: str, status: str = "completed") -> None:
    store = CellStore(folder.cells, key)
    recorder = StepRecorder("basic")
    recorder.tables["steps.parquet"].append({"step": 0, "sampled_reward": 0.5})
    with store.open(), store.finish() as final:
        recorder.write(final)
        write_json(final / "cell.json", {"status": status, "key": key, "config": {}})


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

    def guarded(original):
        def change(*arguments, **options):
            if next(left, None) is None:
                raise Killed
            return original(*arguments, **options)

        return change

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "rename"), (Path, "mkdir"), (shutil, "rmtree"), (Path, "replace")):
            patch.setattr(owner, name, guarded(getattr(owner, name)))
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
                    write_json(final / "cell.json", {"status": "completed", "key": key, "config": {}})
        except Killed:
            return False
    return True


@pytest.mark.parametrize("kill_at", range(STEPS_OF_A_LIFE))
def test_a_kill_before_any_change_of_the_file_system_loses_nothing(
    tmp_path: Path, kill_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived = live(tmp_path, "a", kill_at, monkeypatch)
    assert live(tmp_path, "a", 10_000, monkeypatch), "the next run must finish the cell"
    final = tmp_path / "a"
    assert damage(final) is None
    assert {p.name for p in (final / "checkpoints").iterdir()} == {"00000001", "00000002"}
    assert not (tmp_path / "a.partial").exists()
    if kill_at == STEPS_OF_A_LIFE - 1:
        assert lived, "raise STEPS_OF_A_LIFE: not every change has been tried"


def zero_the_middle(path: Path) -> None:
    """Damage the data and leave the footer alone."""
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(bytes(content))


def test_a_broken_grid_file_is_set_aside(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    (tmp_path / "grid.json").write_text("{")
    folder.update_grid({"a": {"control": False}})
    assert (tmp_path / "damaged-grid.json").read_text() == "{"
    assert list(read_json(tmp_path / "grid.json")["cells"]) == ["a"]


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda cell: (cell / "cell.json").write_text("{"), "cell.json cannot be read"),
        (lambda cell: (cell / "cell.json").write_text("{}"), "no legal status"),
        (lambda cell: (cell / "cell.json").write_text('{"status": "completed"}'), "does not say what was run"),
        (lambda cell: zero_the_middle(cell / "steps.parquet"), "steps.parquet cannot be read"),
        (lambda cell: (cell / "steps.parquet").write_bytes(b"PAR1 not really"), "steps.parquet cannot be read"),
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
    folder.update_grid({"a": {"control": True}, "b": {"control": False}})
    folder.update_grid({"a": {"control": False}, "b": {"control": True}, "c": {"control": True}})
    cells = read_json(tmp_path / "grid.json")["cells"]
    assert {key: entry["control"] for key, entry in cells.items()} == {"a": False, "b": False, "c": True}


def test_json_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert os.listdir(tmp_path) == ["x.json"]
