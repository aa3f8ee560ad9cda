"""A results folder that several users share: what one may not read is neither damaged nor in the way of the rest."""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
from command_line import call

from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.check import check_folder
from vcpo_bench.bench.training.checkpoint import write_state

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


class Rights(ctypes.Structure):
    """`struct __user_cap_data_struct` of capset(2), once for each 32 capabilities."""

    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def obeying_modes() -> Iterator[None]:
    """Inside, this thread reads only what the modes of files allow, as root too; all else stays as it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before, inside = (Rights * 2)(), (Rights * 2)()
    assert libc.capget(header, before) == libc.capget(header, inside) == 0
    inside[0].effective &= ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    assert libc.capset(header, inside) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


@contextmanager
def without_rights_to(path: Path) -> Iterator[None]:
    """Inside, nobody may read a file or folder."""
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with obeying_modes() if os.geteuid() == 0 else nullcontext():
            yield
    finally:
        path.chmod(mode)


@pytest.fixture
def results(tmp_path: Path, make_results: Callable[..., Path]) -> Path:
    folder = make_results(tmp_path / "results", methods=("clip",), lags=(1,), seeds=(0, 1), steps=20, controls=False)
    for cell in (folder / "cells").iterdir():
        state = cell / "checkpoints" / "00000002"
        state.mkdir(parents=True)
        write_state(state, cell.name, {"a": torch.zeros(2)}, {"step": 2})
    return folder


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_checkpoints_have_the_rights_that_the_user_chose(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_state(tmp_path, "key", {"a": torch.zeros(2)}, {})
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "state.json": mode,
        "state.safetensors": mode,
    }


def test_a_checkpoint_that_may_not_be_read_is_not_damaged(results: Path) -> None:
    state = next(results.glob("cells/*/checkpoints/00000002/state.safetensors"))
    call("results", "check", str(results))
    with without_rights_to(state):
        checked = call("results", "check", str(results), "--set-aside")
    assert checked.exit_code == 1
    assert checked.stdout.splitlines() == [
        f"{state} cannot be read (Permission denied)",
        "2 cells, 2 checkpoints: nothing damaged, 1 not readable, so not verified, "
        "3 with no checksums (an earlier version wrote them)",
    ]
    assert state.exists()


@pytest.mark.parametrize("part", ["", "cell.json", "steps.parquet", "checkpoints"])
def test_one_cell_that_may_not_be_read_leaves_the_others(results: Path, part: str) -> None:
    cell = min((results / "cells").iterdir())
    call("show", str(results), "--json")
    with without_rights_to(cell / part):
        shown, found, checked = call("show", str(results), "--json"), load(results), list(check_folder(results))
    assert shown.exit_code == 0
    if part != "checkpoints":
        assert "cannot be read (Permission denied)" in shown.stderr
    assert len(found.cells) == (2 if part in ("steps.parquet", "checkpoints") else 1)
    assert [one.path for one in checked if one.damage] == []
    assert {one.path for one in checked if one.unread} == {cell}


def test_a_grid_that_may_not_be_read_is_not_damaged(results: Path) -> None:
    with without_rights_to(results / "grid.json"):
        found = load(results)
    assert len(found.cells) == 2
    assert [problem.what for problem in found.problems] == [
        "cannot be read (Permission denied), so which cells are controls is unknown"
    ]


def test_a_running_cell_that_may_not_be_read_leaves_the_others(
    tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    folder = make_results(
        tmp_path / "results", methods=("clip", "tis"), lags=(1,), seeds=(0,), steps=20, partial=("tis",)
    )
    (cell,) = (folder / "cells").glob("*.partial")
    with without_rights_to(cell):
        found, checked = load(folder, include_partial=True), list(check_folder(folder))
    assert [str(problem) for problem in found.problems] == [f"{cell / 'cell.json'} cannot be read (Permission denied)"]
    assert len(found.cells) == 3
    assert [one.unread for one in checked if one.unread] == [
        f"{cell / 'checkpoints'} cannot be read (Permission denied)"
    ]
