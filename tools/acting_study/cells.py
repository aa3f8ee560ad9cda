"""The runs of the acting study as cells: parents from a grid, branches as forks of what was recorded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.replay.recorded_cell import read_cell
from vcpo_bench.bench.replay.replay import DIFFERS, origin_folder
from vcpo_bench.methods import parse_method
from vcpo_bench.records import CELLS

from .design import LAG, METHOD, SLOWDOWN, SLOWER, STEPS, Branch, Parent, parents

SETTINGS = CellSettings(record="diagnostics", steps=STEPS)
PARENTS, FORKS, STATES = "parents", "forks", "states"
"""Folders: results of the parents, results of their branches, and the states from which these start."""
METHODS = ("vcpo", "tis", "clip")


def parent_cells() -> dict[Parent, PlannedCell]:
    """The cell of every parent."""
    return {parent: _cell(parent) for parent in parents()}


def _cell(parent: Parent) -> PlannedCell:
    spec = GridSpec(
        methods=(METHOD,),
        staleness=(LAG,),
        seeds=(parent.seed,),
        tasks=(parent.task,),
        lrs=(parent.lr,),
        settings=SETTINGS,
        controls=False,
    )
    (cell,) = plan_grid(spec)
    return cell


def fork_cells(out: Path, branches: Iterable[Branch]) -> list[PlannedCell]:
    """The cells of these branches. The states they start from are made where they are missing.

    A folder of forks takes one update only, because a scoreboard would count a parent twice. The states are therefore
    in one folder per update; the tables of this study know which row is which branch.

    Args:
        out: Results of the study. The parents have ended in there.
        branches: What to continue.

    Raises:
        RuntimeError: This machine does not replay a parent as it was recorded.
    """
    cells: list[PlannedCell] = []
    known = parent_cells()
    ordered = sorted(branches, key=lambda branch: (branch.parent, branch.at))
    for (parent, at), own in groupby(ordered, key=lambda branch: (branch.parent, branch.at)):
        recorded = read_cell(out / PARENTS / CELLS / known[parent].key)
        spec = ForkSpec([recorded], at, METHODS, out / STATES / f"{at:04d}")
        planned = {cell.config.method: cell for cell in plan_forks(spec)}
        chosen = [_slower(planned[METHOD]) if branch.act == SLOWER else planned[branch.act] for branch in own]
        write_origins(spec, chosen, wait=False, say=_exact(origin_folder(spec.out, recorded.key, at)))
        cells += chosen
    return cells


def _slower(cell: PlannedCell) -> PlannedCell:
    """A fork that goes on with its parent's method and a smaller learning rate."""
    config = cell.config.model_copy(update={"lr": float(f"{cell.config.lr / SLOWDOWN:.4g}")})
    return replace(cell, config=config, key=config.key(parse_method(config.method).version), control=False)


def _exact(origin: Path) -> Callable[[str], None]:
    """Takes lines about the replay that makes a fork state; one that differs from the record leaves no state."""

    def say(line: str) -> None:
        if DIFFERS in line:
            shutil.rmtree(origin)
            raise RuntimeError(f"a branch would not share its parent's past: {line}")
        print(line)

    return say
