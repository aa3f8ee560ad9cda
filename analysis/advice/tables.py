"""The packaged tables: three that follow from our studies, and `evidence.csv` of papers and reports."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Tolerated:
    """The largest learning rate that survives, as a share of the synchronous one (`tolerated.csv`).

    Attributes:
        share: At most 1 where a lag costs learning rate; where `beyond`, that of the end of the ladder.
        beyond: `under`: most searches failed at the lowest rate already; `over`: most failed at none; else empty.
        change: Final reward less the start's at the largest rate that survived, a mean over the searches that have one.
    """

    task: str
    method: str
    lag: int
    share: float
    beyond: str
    change: float
    seeds: int


@dataclass(frozen=True)
class Earned:
    """Final held-out reward at one learning rate for all methods, with its 95% interval over seeds (`earned.csv`)."""

    method: str
    lag: int
    reward: float
    low: float
    high: float
    start: float
    failed: int
    seeds: int


@dataclass(frozen=True)
class Published:
    """One run that a paper or a report describes (`evidence.csv`).

    Attributes:
        tokens: Longest response; None where it is not said.
        lag: In updates, of each sample (`fixed`) or at most (`at most`; `sawtooth`: a rollout serves lag + 1 updates).
        outcome: `rises`, `unstable` or `collapses`.
        figure: What was measured.
        source: Where it stands, and whether it was read by eye or second-hand.
    """

    paper: str
    arxiv: str
    model: str
    task: str
    tokens: int | None
    lag: int
    lag_is: str
    method: str
    setting: str
    outcome: str
    figure: str
    source: str


@cache
def tolerated() -> tuple[Tolerated, ...]:
    """Every row of `tolerated.csv`."""
    return tuple(Tolerated(**row) for row in _rows("tolerated", Tolerated))


@cache
def earned() -> tuple[Earned, ...]:
    """Every row of `earned.csv`."""
    return tuple(Earned(**row) for row in _rows("earned", Earned))


@cache
def facts() -> dict[str, str]:
    """Single numbers by name (`facts.csv`)."""
    with (FOLDER / "facts.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["value"] for row in csv.DictReader(file)}


@cache
def published() -> tuple[Published, ...]:
    """Every row of `evidence.csv`."""
    return tuple(Published(**row) for row in _rows("evidence", Published))


def _rows(name: str, kind: type) -> list[dict[str, Any]]:
    types = {field.name: _TYPES[str(field.type)] for field in fields(kind)}
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [{column: types[column](text) for column, text in row.items()} for row in csv.DictReader(file)]


_TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "int | None": lambda text: int(text) if text else None,
}
