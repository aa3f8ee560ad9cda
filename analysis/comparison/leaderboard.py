"""Entries of a leaderboard: what one study contributes, as data that is checked whenever it is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.comparison.board_settings import settings_problem, settings_text
from vcpo_bench.analysis.final_reward import LAST
from vcpo_bench.analysis.intervals import reward_interval
from vcpo_bench.errors import DamagedResultError

SCHEMA = 2
"""Version of the form of an entry. The first had no settings, so that its rows cannot be given a board."""

PLACE = ("task", "regime", "lag", "lr", "method")
"""What tells rows of one board apart."""

_ROW: dict[str, tuple[type, ...]] = {
    "task": (str,),
    "regime": (str,),
    "lag": (int,),
    "lr": (float, int),
    "method": (str,),
    "settings": (dict,),
    "seeds": (int,),
    "score": (float, int, type(None)),
    "low": (float, int, type(None)),
    "high": (float, int, type(None)),
    "failed": (int,),
    "judged": (int,),
}
"""Fields of a row, and their JSON types. `settings`: those that differ from the defaults. `score`: mean over seeds."""


@dataclass(frozen=True)
class Entry:
    """One study on a leaderboard.

    Attributes:
        name: Of its files: letters, digits, `-`, `_` and `.`.
        title: In words.
        by: Who ran it.
        machine: Where it ran.
        versions: Package versions that made the results, and the commits.
        rules_version: Results compare only within one version of the rules.
        cells: Number of training runs.
        rows: One per settings, task, regime, lag, learning rate and method, with the fields of the schema; without
            controls.
        last_evaluations: The score of a run is the mean reward of so many evaluations at its end.
    """

    name: str
    title: str
    by: str
    machine: str
    versions: str
    rules_version: str
    cells: int
    rows: tuple[Mapping[str, Any], ...]
    last_evaluations: int = LAST

    def text(self) -> str:
        """The entry as JSON, the same for the same entry."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def rows_of(scores: pd.DataFrame, settings: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The rows of an entry.

    Args:
        scores: One row per cell: `task`, `regime`, `staleness`, `lr`, `method`, `control`, `status`, `event`,
            `failed`, `score`.
        settings: Of each cell, those that differ from the defaults, see `board_settings.unusual_settings`.
    """
    axes = ["settings", "task", "regime", "staleness", "lr", "method"]
    told = scores.assign(settings=[json.dumps(dict(one)) for one in settings])
    rows = []
    for place, cells in told[~told["control"].astype(bool)].groupby(axes, sort=True):
        values = cells.loc[cells["status"] != "error", "score"].dropna().to_numpy(np.float64)
        low, high = reward_interval(values)
        own, task, regime, lag, lr, method = cast("tuple[str, str, str, int, float, str]", place)
        row: dict[str, Any] = {"task": task, "regime": regime, "lag": int(lag), "lr": float(lr), "method": method}
        row |= {"settings": json.loads(own)}
        row |= {"seeds": len(values), "score": _known(values.mean() if values.size else math.nan)}
        row |= {"low": _known(low), "high": _known(high), "failed": int(cells["collapsed"].sum())}
        rows.append(row | {"judged": int((~cells["event"].isin(UNDECIDED)).sum())})
    return tuple(rows)


def _known(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def read_entry(path: Path) -> Entry:
    """Read an entry.

    Raises:
        DamagedResultError: It is no entry, or of another version of the form.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedResultError(f"{path}: cannot be read as an entry of a leaderboard ({error})") from error
    if problem := find_problem(content):
        remedy = "write it again with vcpo-bench results publish"
        raise DamagedResultError(f"{path}: is no entry of a leaderboard: {problem}; {remedy}")
    fields: dict[str, Any] = {name: content[name] for name in content if name != "schema"}
    fields["rows"] = tuple(content["rows"])
    return Entry(**fields)


def find_problem(content: object) -> str:
    """What is wrong with the content of an entry's file; empty: nothing."""
    if not isinstance(content, dict):
        return "it is no JSON object"
    if content.get("schema") != SCHEMA:
        return f"its schema is {content.get('schema')!r}, and this version reads {SCHEMA}, which names the settings"
    texts = ("name", "title", "by", "machine", "versions", "rules_version")
    wanted: dict[str, tuple[type, ...]] = dict.fromkeys(texts, (str,)) | {"rows": (list,)}
    if problem := _mismatch(content, wanted | dict.fromkeys(("schema", "cells", "last_evaluations"), (int,))):
        return problem
    if content["last_evaluations"] < 1:
        return "a score is the mean of no evaluation"
    if not is_name(content["name"]):
        return f"its name is {content['name']!r}; use letters, digits, '-', '_' and '.'"
    for number, row in enumerate(content["rows"], 1):
        if problem := "it is no JSON object" if not isinstance(row, dict) else _row_problem(row):
            return f"row {number}: {problem}"
    places = [(settings_text(row["settings"]), *(row[name] for name in PLACE)) for row in content["rows"]]
    return "two rows are about the same" if len(set(places)) < len(places) else ""


def is_name(name: str) -> bool:
    """Whether an entry may be called this: the name becomes that of a file and part of a link."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name) is not None


def _mismatch(content: Mapping[str, Any], wanted: Mapping[str, Sequence[type]]) -> str:
    """A field that is missing, not known, or of another type."""
    for name in wanted:
        if name not in content:
            return f"the field {name!r} is missing"
    for name, value in content.items():
        if name not in wanted:
            return f"the field {name!r} is unknown"
        if type(value) not in wanted[name]:
            return f"the field {name!r} is {value!r}"
    return ""


def _row_problem(row: Mapping[str, Any]) -> str:
    return _mismatch(row, _ROW) or settings_problem(row["settings"]) or _unlikely(row)


def _unlikely(row: Mapping[str, Any]) -> str:
    """What no run can have led to."""
    numbers = [row[name] for name in ("lr", "score", "low", "high") if row[name] is not None]
    if not all(math.isfinite(one) for one in numbers) or row["lr"] <= 0:
        return "a number is not finite, or the learning rate is not above 0"
    if min(row[name] for name in ("lag", "seeds", "failed", "judged")) < 0 or row["failed"] > row["judged"]:
        return "a count is below 0, or more runs failed than were judged"
    ends = [float(row[name]) for name in ("low", "score", "high") if row[name] is not None]
    return "the score lies outside its interval" if len(ends) == 3 and ends != sorted(ends) else ""
