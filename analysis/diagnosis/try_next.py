"""What to change before the next start, as settings of the trainer that wrote the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from vcpo_bench.analysis.diagnosis.causes.weights import OLD
from vcpo_bench.analysis.diagnosis.diagnosis import Advice, Cause
from vcpo_bench.analysis.logs.run import LoggedRun

SETTINGS = Path(__file__).parents[1] / "logs" / "settings"
"""What to do by cause, and one file of settings per trainer."""
MOST = 4
_LAG = ("lag_mean", "lag_max")


def try_next(run: LoggedRun, causes: Sequence[Cause]) -> tuple[Advice, ...]:
    """At most four things to change, the most likely first; none without a probable cause.

    The first actions of the first cause go before the first of the next; what the log shows to be done already or
    the trainer does by default, and what needs a lag where there is none, is left out.
    """
    known, trainer = _read("actions"), _read(run.framework)
    own, done, shown = trainer.get("settings", {}), trainer.get("default", ()), trainer.get("unless", {})
    ranks: dict[str, int] = {}
    for number, cause in enumerate(one for one in causes if one.standing == "probable"):
        for place, name in enumerate(_actions(cause, known["causes"])):
            ranks[name] = min(ranks.get(name, 99), number + place)
    found = []
    for name in sorted(ranks, key=lambda name: ranks[name]):
        action = known["actions"][name]
        words = own.get(name, action.get("words", ""))
        signs = shown.get(name, action.get("unless", ()))
        if words and name not in done and not _shows(run, signs) and _applies(run, action):
            found.append(Advice(words, action["why"], action["source"]))
    return tuple(found[:MOST])


def how_to_resume(framework: str) -> str:
    """How this trainer starts from a checkpoint; empty where that is not known."""
    return str(_read(framework).get("resume", ""))


def _actions(cause: Cause, by_cause: Mapping[str, list[str]]) -> list[str]:
    ways = [f"{cause.name} {sign.rpartition(' ')[2]}" for _, sign in cause.signs]
    return next((by_cause[name] for name in (*ways, cause.name) if name in by_cause), [])


def _shows(run: LoggedRun, signs: Sequence[str]) -> bool:
    """Whether a log has one of these columns, or a column filled from one of these names."""
    filled = {name for one in run.series.values() for name in one.logged_as}
    return any(sign in run.series or sign in filled for sign in signs)


def _applies(run: LoggedRun, action: Mapping[str, Any]) -> bool:
    lags = [run.series[name].finite[1] for name in _LAG if name in run.series]
    if action.get("fresh", False) and any(one.size and float(np.median(one)) >= OLD for one in lags):
        return False
    return not action.get("lag", False) or any(one.size and float(np.max(one)) >= 1 for one in lags)


@cache
def _read(name: str) -> dict[str, Any]:
    file = SETTINGS / f"{name}.yaml"
    if not file.is_file():
        return {}
    read: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return read
