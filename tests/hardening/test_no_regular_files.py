"""Links, pipes and devices in a stranger's folder: nothing waits for them, and nothing copies what they lead to."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from command_line import call
from fake_scheduler import cells_of, end_cell

from vcpo_bench.bench.cells.check import check_folder
from vcpo_bench.bench.cells.merge import merge
from vcpo_bench.bench.cells.results_folder import ResultsFolder, status_of
from vcpo_bench.bench.training.checkpoint import read_state
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import read_sealed, write_sealed
from vcpo_bench.files.regular import read_regular

KINDS = ("link", "pipe", "device")
PATIENCE_SECONDS = 60


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "key").write_text("secret")
    return folder


@pytest.fixture
def gift(tmp_path: Path) -> Path:
    """A sealed results folder of one cell with a checkpoint, a fork state and a table."""
    (cell,) = cells_of(tmp_path / "plan", 1)
    folder = ResultsFolder(tmp_path / "gift")
    end_cell(folder.cells, cell, "completed")
    for state in (folder.cells / cell.key / "checkpoints" / "00000002", folder.path / "origins" / "parent-00000002"):
        state.mkdir(parents=True)
        (state / "weights").write_bytes(b"123")
        write_sealed(state / "state.json", {"step": 2})
    (folder.path / "probes").mkdir()
    (folder.path / "probes" / "a.parquet").write_bytes((folder.cells / cell.key / "steps.parquet").read_bytes())
    return folder.path


def become(path: Path, kind: str, secret: Path) -> None:
    if path.exists():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(secret / "key" if kind == "link" else "/dev/zero")


def cell_in(folder: Path) -> Path:
    (cell,) = (folder / "cells").iterdir()
    return cell


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_what_is_read_is_a_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(str(path))
    with pytest.raises(DamagedResultError, match="is no regular file"):
        read_regular(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["notes.txt", "checkpoints/00000099", "checkpoints/00000002/more"])
def test_what_no_seal_names_is_not_copied(gift: Path, secret: Path, tmp_path: Path, kind: str, name: str) -> None:
    become(cell_in(gift) / name, kind, secret)
    done = call("results", "merge", str(gift), "--out", str(tmp_path / "all"))
    assert done.exit_code == 0
    assert done.stdout == f"1 cell copied to {tmp_path / 'all'}\n"
    assert done.stderr == f"left out, as no part of the results: {cell_in(gift) / name}\n"
    copied = cell_in(tmp_path / "all")
    assert sorted(os.listdir(copied / "checkpoints")) == ["00000002"]
    assert sorted(os.listdir(copied / "checkpoints" / "00000002")) == ["state.json", "weights"]
    assert set(os.listdir(copied)) == {"cell.json", "checkpoints", *read_sealed(copied / "cell.json")["files"]}
    assert not any("secret" in path.read_text(errors="replace") for path in copied.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["steps.parquet", "cell.json", "checkpoints/00000002/weights", "checkpoints/00000002/state.json"]
)
def test_what_a_seal_names_is_a_file(gift: Path, secret: Path, tmp_path: Path, kind: str, name: str) -> None:
    place = cell_in(gift) / name
    become(place, kind, secret)
    expected = "is a link, which is not followed" if kind != "pipe" else "is no regular file"
    with pytest.raises(DamagedResultError, match=expected):
        merge([gift], tmp_path / "all")
    assert not (tmp_path / "all" / "cells" / cell_in(gift).name).exists()
    damaged = [one.damage for one in check_folder(gift) if one.damage]
    assert len(damaged) == 1
    assert damaged[0].startswith(f"{place} {expected}")
    if "checkpoints" not in name:
        with pytest.raises(DamagedResultError, match=expected):
            status_of(cell_in(gift))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["probes/a.parquet", "probes/b.parquet", "probes/b", "origins/other-00000002"])
def test_tables_and_states_beside_the_cells_are_files_and_folders(
    gift: Path, secret: Path, tmp_path: Path, kind: str, name: str
) -> None:
    become(gift / name, kind, secret)
    table = name.endswith(".parquet")
    if table and kind == "pipe":
        with pytest.raises(DamagedResultError, match="is no regular file"):
            merge([gift], tmp_path / "all")
    else:
        assert merge([gift], tmp_path / "all").left_out == (str(gift / name),)
    assert not (tmp_path / "all" / name).exists()
    assert [one.path.name for one in check_folder(gift) if one.damage] == ([Path(name).name] if table else [])


@pytest.mark.parametrize("name", ["cells", "cells/KEY", "cells/KEY/checkpoints", "probes", "origins"])
def test_no_folder_is_reached_through_a_link(gift: Path, tmp_path: Path, name: str) -> None:
    place = gift / name.replace("KEY", cell_in(gift).name)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises((UsageError, DamagedResultError), match=f"{place} is a link, which is not followed"):
        merge([gift], tmp_path / "all")
    if name == "cells":
        for verb in (("results", "check"), ("show",)):
            assert f"error: {place} is a link, which is not followed" in call(*verb, str(gift)).stderr
    else:
        assert [one.damage[: len(str(place)) + 10] for one in check_folder(gift) if one.damage] == [
            f"{place} is a link"
        ]
    if name == "cells/KEY":
        with pytest.raises(UsageError, match="is a link, which is not followed"):
            ResultsFolder(gift).status(place.name)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_the_seal_leaves_out_are_a_file(gift: Path, secret: Path, kind: str) -> None:
    (cell,) = cells_of(gift.parent / "plan", 1)
    state = cell_in(gift) / "checkpoints" / "left-out"
    state.mkdir()
    write_sealed(state / "state.json", {"key": cell.key})
    become(state / "state.safetensors", kind, secret)
    with pytest.raises(DamagedResultError, match=r"is a link|is no regular file"):
        read_state(state, cell.config, cell.key)


def test_linked_cells_are_rows_of_their_own(make_results: Callable[..., Path], tmp_path: Path) -> None:
    gift = make_results(tmp_path / "gift", methods=("clip",), lags=(1,), seeds=(0, 1), steps=20)
    linked = sorted((gift / "cells").iterdir())[:2]
    for place, target in zip(linked, (tmp_path / "elsewhere", tmp_path / "nowhere"), strict=True):
        place.rename(tmp_path / "elsewhere" if target.name == "elsewhere" else tmp_path / "gone")
        place.symlink_to(target)
    (gift / "probes").symlink_to(tmp_path)
    shown = call("show", str(gift))
    assert shown.exit_code == 0
    warned = [line for line in shown.stderr.splitlines() if "is a link, which is not followed" in line]
    assert [line.split()[1] for line in warned] == [str(place) for place in linked]
