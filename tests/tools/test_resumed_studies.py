"""A study stopped before the first of its runs has ended goes on; its results folder has a grid and no ended cell."""

from collections.abc import Callable, Sized
from pathlib import Path

import pytest
from acting_study.cells import FORKS, PARENTS
from acting_study.tables import run_table
from boundary_study import run as boundary
from phase_study import grow as phase

from vcpo_bench.records import CELLS, GRID_FILE


def _acting(out: Path) -> Sized:
    return run_table(out)


def _boundary(out: Path) -> Sized:
    return boundary.ended(out).runs


def _phase(out: Path) -> Sized:
    return phase.ended(out)


@pytest.mark.parametrize("ended", [_acting, _boundary, _phase])
def test_nothing_has_ended_yet(ended: Callable[[Path], Sized], tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / PARENTS, tmp_path / FORKS):
        (folder / CELLS / "0123456789ab.partial").mkdir(parents=True)
        (folder / GRID_FILE).write_text("{}")
    assert len(ended(tmp_path)) == 0
