"""What do the halves of VCPO do? Step scaling (ESS), baseline (OPOB), and controls that separate size from timing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from vcpo_bench.analysis.comparison.answers import MARGIN
from vcpo_bench.analysis.comparison.best_learning_rate import were_tuned
from vcpo_bench.analysis.comparison.normalized_rewards import task_names
from vcpo_bench.analysis.comparison.pairs import PLACE, Contrast, contrast
from vcpo_bench.analysis.comparison.quiet_updates import quiet_updates
from vcpo_bench.analysis.method_text import base_name, items_of, parts_of
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.wording import learning_rate

_VCPO = {
    "tis": (False, False),
    "vcpo(baseline=group)": (True, False),
    "vcpo(ess=off)": (False, True),
    "vcpo": (True, True),
}
"""VCPO is sequence-level TIS with both halves: (ESS, OPOB)."""

BEST_RATE = "best rate"
"""Value of `at` in `ablation_table` for runs at best learning rates."""

_DEFAULT_DONOR = "vcpo"
"""Method whose step sizes `lr-matched` and `lr-shuffled` use by default; canonical expressions leave it out."""
_STEP_CONTROLS = {"lr-matched": "matched", "lr-shuffled": "shuffled"}

EFFECTS: dict[str, dict[tuple[bool, bool], float]] = {
    "ess": {(True, False): 1.0, (False, False): -1.0},
    "opob": {(False, True): 1.0, (False, False): -1.0},
    "both": {(True, True): 1.0, (False, False): -1.0},
    "ess given opob": {(True, True): 1.0, (False, True): -1.0},
    "opob given ess": {(True, True): 1.0, (True, False): -1.0},
    "interaction": {(True, True): 1.0, (True, False): -1.0, (False, True): -1.0, (False, False): 1.0},
}
"""Contrast of each effect: weight by (with ESS, with OPOB)."""


_NONE = Contrast(math.nan, math.nan, math.nan, math.nan, math.nan, 0)


class Variant(NamedTuple):
    """One member of an ablation: a base method with or without each half."""

    family: str
    ess: bool
    opob: bool


def variants(expression: str) -> list[Variant]:
    """The ablations an expression is part of: that of its own base, and that of VCPO."""
    base, *extra = parts_of(expression)
    names = [base_name(part) for part in extra]
    rest = [part for part, name in zip(extra, names, strict=True) if name not in ("ess", "opob")]
    found = []
    if base_name(base) != "vcpo":
        found.append(Variant("+".join([base, *rest]), "ess" in names, "opob" in names))
    if expression in _VCPO:
        found.append(Variant("vcpo", *_VCPO[expression]))
    return found


Families = dict[str, dict[tuple[bool, bool], str]]
"""Family -> (with ESS, with OPOB) -> method expression."""


def find_families(methods: Iterable[str]) -> Families:
    """Sort methods into families that differ in their halves only."""
    families: Families = {}
    for method in sorted(set(methods)):
        for variant in variants(method):
            families.setdefault(variant.family, {})[variant.ess, variant.opob] = method
    return families


def methods_of(families: Families, family: str, effect: str) -> list[str]:
    """The methods whose scores an effect in `ablation_table` is a contrast of."""
    if effect in EFFECTS:
        return [families[family][half] for half in EFFECTS[effect]]
    return [families[one][half] for one in ("vcpo", "clip") for half in ((True, False), (False, False))]


def ablation_table(tuned: pd.DataFrame, cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Effects of both halves in every family of which at least two members were run.

    Args:
        tuned: Runs at best learning rates (`analysis.comparison.best_learning_rate.TunedRuns.runs`).
        cells: All cells, for the effects at every single learning rate.
        column: Which score.

    Returns:
        Columns `family`, `staleness`, `at` (a learning rate, or `best rate` where there was a choice), `effect` and
        those of `analysis.comparison.pairs.Contrast`. Effects: `ess`, `opob`, `both` against the bare base; each
        half given the other; their `interaction`; and `ess, vcpo minus clip`: positive where clipping takes away
        from the effect of ESS scaling.
    """
    families = find_families([*tuned["method"], *cells["method"]])
    rows = []
    for lag in sorted(set(cells["staleness"])):
        here, best = cells[cells["staleness"] == lag], tuned[tuned["staleness"] == lag]
        scopes = {BEST_RATE: best} if were_tuned(best) else {}
        scopes |= {learning_rate(lr): here[here["lr"] == lr] for lr in sorted(set(here["lr"]))}
        for at, runs in scopes.items():
            where = {"staleness": lag, "at": at}
            for family, members in families.items():
                rows += [{"family": family} | where | row for row in _effects(runs, members, column)]
            rows += [{"family": "vcpo, clip"} | where | row for row in _canceling(runs, families, column)]
    return pd.DataFrame(rows, columns=["family", "staleness", "at", "effect", *Contrast._fields])


def step_controls(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """A method against its own step sizes at the wrong times: `lr-matched` (their mean), `lr-shuffled` (another order).

    A positive difference says that steps timed by ESS beat equally small steps that are not. Paired at the same task,
    lag, learning rate and seed, and averaged over the learning rates of a seed. Columns: `method`, `control` (matched
    or shuffled), `staleness`, those of `analysis.comparison.pairs.Contrast` (method minus control), `collapsed` and
    `collapsed_control` counts, and `margin`: a difference whose 95% interval lies within it of 0 is none that matters.
    """
    rows = []
    for method in sorted(set(cells["method"])):
        found = step_control(method)
        if found is None:
            continue
        kind, target = found
        for lag, here in cells.groupby("staleness"):
            both = here[here["method"].isin([method, target])]
            difference = contrast(both, {target: 1.0, method: -1.0}, column, (*PLACE, "lr"))
            failed = both.groupby("method")["collapsed"].sum()
            counts = {
                "collapsed": int(failed.get(target, 0)),
                "collapsed_control": int(failed.get(method, 0)),
                "margin": MARGIN,
            }
            rows.append({"method": target, "control": kind, "staleness": lag} | difference._asdict() | counts)
    columns = ["method", "control", "staleness", *Contrast._fields, "collapsed", "collapsed_control", "margin"]
    return pd.DataFrame(rows, columns=columns)


def cost_table(results: Results) -> pd.DataFrame:
    """What an update costs, and what the halves add.

    Columns: `task`, `method`, `cells`, `milliseconds` (median over cells of a cell's median time per update in
    scoring and updating, sampling and recording left out), `base` (the bare method) and `added` with `low` and
    `high`: the mean paired difference to it (same lag, learning rate and seed) with 95% interval; NaN without pairs.
    Updates that a loaded machine slowed down are left out (`quiet_updates`).
    """
    steps = results.step_columns("seconds_score", "seconds_update")
    work = 1e3 * (steps["seconds_score"] + steps["seconds_update"]).where(quiet_updates(results))
    median = work.groupby(steps["key"].to_numpy()).median()
    cells = results.cells.assign(task=task_names(results.cells), milliseconds=results.cells["key"].map(median))
    rows = []
    for (task, method), own in cells.groupby(["task", "method"]):
        base = _base(str(method))
        pair = cells[(cells["task"] == task) & cells["method"].isin([method, base])]
        place = (*PLACE, "lr")  # times of one seed at two places have nothing in common but the machine
        found = (
            contrast(pair, {str(method): 1.0, base: -1.0}, "milliseconds", place, place) if base != method else _NONE
        )
        rows.append((task, method, len(own), own["milliseconds"].median(), base, found.estimate, found.low, found.high))
    return pd.DataFrame(rows, columns=["task", "method", "cells", "milliseconds", "base", "added", "low", "high"])


def _effects(runs: pd.DataFrame, members: dict[tuple[bool, bool], str], column: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for effect, weights in EFFECTS.items():
        if set(weights) <= set(members):
            found = contrast(runs, {members[half]: weight for half, weight in weights.items()}, column)
            if found.pairs:
                rows.append({"effect": effect, **found._asdict()})
    return rows


def _canceling(runs: pd.DataFrame, families: Families, column: str) -> list[dict[str, object]]:
    first, second = families.get("vcpo", {}), families.get("clip", {})
    if not {(True, False), (False, False)} <= set(first) & set(second):
        return []
    weights = {first[True, False]: 1.0, first[False, False]: -1.0, second[True, False]: -1.0, second[False, False]: 1.0}
    found = contrast(runs, weights, column)
    return [{"effect": "ess, vcpo minus clip", **found._asdict()}] if found.pairs else []


def step_control(expression: str) -> tuple[str, str] | None:
    """(`matched` or `shuffled`, the method whose step sizes are used) of a control, else None."""
    for item in items_of(expression):
        if item.name.text in _STEP_CONTROLS:
            donors = [argument.value.text for argument in item.arguments if argument.key and argument.key.text == "to"]
            return _STEP_CONTROLS[item.name.text], donors[0] if donors else _DEFAULT_DONOR
    return None


def _base(expression: str) -> str:
    if expression in _VCPO:
        return "tis"
    return next((variant.family for variant in variants(expression)), expression)
