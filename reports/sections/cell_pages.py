"""A page per cell: its settings, how it ended, its curves, and where its files are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd

from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.formatting import duration, number, rate, whole
from vcpo_bench.reports.sections.cell_curves import Spark, sparks_of
from vcpo_bench.reports.study import Study

Row = Mapping[Any, Any]
"""A row of a table: as a dictionary it answers many times faster than as a series."""

MANY = 200
"""With more cells than this, those that differ only in their seed stand folded under one line."""


@dataclass(frozen=True)
class CellPage:
    """What is shown of one cell; `place` is what the page filters by, `files` the path to its folder, from the page."""

    anchor: str
    group: str
    title: str
    status: str
    bad: bool
    facts: list[tuple[str, str]]
    sparks: list[Spark]
    place: tuple[tuple[str, str], ...] = ()
    files: str = ""

    @property
    def link(self) -> str:
        """`files` as the address of a link."""
        return quote(f"{self.files}/")


_SETTINGS = ("regime", "optimizer", "policy", "model", "sampler", "record")
_SIZES = (("steps", "updates planned"), ("prompts", "prompts"), ("responses", "responses per prompt"))


class CellGroup(NamedTuple):
    """Cells that stand together, and the line they are folded under; an empty title: they are not folded."""

    title: str
    collapsed: int
    cells: list[CellPage]


def grouped(cells: list[CellPage]) -> list[CellGroup]:
    """The cells as a page shows them: up to `MANY` as they are, more folded by everything but the seed."""
    if len(cells) <= MANY:
        return [CellGroup("", 0, cells)] if cells else []
    together = [(title, list(members)) for title, members in groupby(cells, key=lambda cell: cell.group)]
    return [CellGroup(title, sum(cell.bad for cell in members), members) for title, members in together]


def cell_pages(study: Study, home: Path | None = None) -> list[CellPage]:
    """All cells, in the order of task, learning rate, lag, method and seed.

    Args:
        study: What was recorded.
        home: Folder of the page, from which the cells' files are linked; None: they are not.
    """
    ordered = study.cells.sort_values(["task", "lr", "staleness", "method", "seed"], kind="stable")
    recorded = {str(row["key"]): row for row in study.results.cells.to_dict("records")}
    start = None if home is None else os.path.realpath(home)
    return [_page(study, cell, recorded[str(cell["key"])], start) for cell in ordered.to_dict("records")]


def _page(study: Study, cell: Row, recorded: Row, home: str | None) -> CellPage:
    group = f"{cell['task']}, lag {cell['staleness']}, lr {rate(cell['lr'])}, {cell['method']}"
    key, onset = str(cell["key"]), float(cell["onset"])
    status = f"{cell['event']}, onset at update {onset:.0f}" if pd.notna(onset) else str(cell["event"])
    place = (
        ("task", task_of(cell)),
        ("lag", str(cell["staleness"])),
        ("lr", rate(cell["lr"])),
        ("method", str(cell["method"])),
    )
    return CellPage(
        anchor=anchor(key),
        group=group,
        title=f"{group}, seed {cell['seed']}",
        status=status,
        bad=bool(cell["collapsed"]) or cell["status"] == "error",
        facts=_facts(cell, recorded),
        sparks=sparks_of(study, key, onset, int(cell["staleness"])),
        place=place,
        files="" if home is None else _relative(str(recorded["path"]), home),
    )


def _facts(cell: Row, recorded: Row) -> list[tuple[str, str]]:
    facts = [
        ("key", str(cell["key"])),
        ("ended as", f"{cell['status']} after {whole(cell['steps_done'])} updates"),
        ("reward", ", ".join(f"{when} {number(cell[f'{when}_reward'])}" for when in ("start", "best", "final"))),
        ("lag", _lag(cell)),
        ("settings", ", ".join(_settings(recorded))),
    ]
    if pd.notna(cell["seconds"]):
        facts.append(("time", duration(float(cell["seconds"]))))
    reason = why(cell)
    return [*facts, ("reason", reason)] if reason else facts


def _lag(cell: Row) -> str:
    """What was asked for and what the updates had; the mean is over tokens, the largest over trajectories."""
    asked = f"{cell['staleness']} requested"
    if pd.isna(cell["lag_mean"]):
        return asked
    return f"{asked}, {number(cell['lag_mean'])} realized on average, {whole(cell['lag_max'])} at most"


def _settings(recorded: Row) -> list[str]:
    """What a reader needs to run the cell again; the rest is in its `cell.json`."""
    known = [name for name in _SETTINGS if isinstance(value := recorded.get(name), str) and value]
    sizes = [f"{recorded[name]} {word}" for name, word in _SIZES if pd.notna(recorded.get(name))]
    rules = [f"rules {recorded['rules_version']}"] if pd.notna(recorded.get("rules_version")) else []
    return [*(f"{name} {recorded[name]}" for name in known), *sizes, *rules]


def _relative(path: str, home: str) -> str:
    """From the page's folder, a real path, to the cell's; absolute where they share no drive."""
    folder = os.path.realpath(path)
    try:
        return os.path.relpath(folder, home).replace(os.sep, "/")
    except ValueError:
        return folder.replace(os.sep, "/")


def task_of(cell: Row | pd.Series) -> str:
    """The task as tables of a report name it: with the regime where it is not the usual one."""
    return str(cell["task"]) if cell["regime"] == SYNCHRONOUS else f"{cell['task']} ({cell['regime']})"


def anchor(key: str) -> str:
    """The anchor of a cell's page, from its key."""
    return f"cell-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def why(cell: Row | pd.Series) -> str:
    """Why a cell ended early, or an empty string; missing values of a table are NaN, not None."""
    return next((text for text in (cell["reason"], cell["error"]) if isinstance(text, str) and text), "")
