"""The results folder under damage, rivals and interruptions."""

import json
import os
from pathlib import Path

import pytest

from vcpo_bench.bench.recorder import Recorder
from vcpo_bench.bench.store import CellStore, ResultsFolder, ended_keys, read_json, write_json
from vcpo_bench.errors import DamagedResultError, UsageError


def end_cell(folder: ResultsFolder, key: str, status: str = "completed") -> None:
    store = CellStore(folder.cells, key)
    with store.open(), store.finish() as final:
        Recorder("basic").write(final)
        write_json(final / "cell.json", {"status": status})


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


def test_kept_checkpoints_survive_a_kill_while_finishing(tmp_path: Path) -> None:
    store = CellStore(tmp_path, "a")
    with store.open():
        store.keep(50, lambda folder: (folder / "weights").touch())
        with pytest.raises(KeyboardInterrupt), store.finish():
            raise KeyboardInterrupt
        (store.partial / "checkpoints").rename(store.partial / "final" / "checkpoints")  # killed one rename later
        with store.finish() as final:
            Recorder("basic").write(final)
            write_json(final / "cell.json", {"status": "completed"})
    assert (store.final / "checkpoints" / "00000050" / "weights").exists()


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda cell: (cell / "cell.json").write_text("{"), "cell.json cannot be read"),
        (lambda cell: (cell / "cell.json").write_text("{}"), "no status"),
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
    with pytest.raises(UsageError, match="holds something else"):
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
