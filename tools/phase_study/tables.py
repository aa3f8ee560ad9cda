"""The tables that ship with the phase study: one row per run, from a results folder; all others follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from configuration_study.areas import reach

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.results import load

from .boundary import estimate, resampled, slopes
from .design import LADDER, LAGS, PLAN, Outcomes, Plan, Search, Unit, bracket, searches

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies" / "phase"
RUNS = FOLDER / "runs.csv"
PLACE = ["seed", "task", "method", "staleness"]
_COLUMNS = [*PLACE, "rung", "lr", "event", "failed", "onset", "final_reward", "mean_step_scale", "mean_ess"]
LAST = 3
"""Evaluations whose mean is the final reward."""
HORIZONS = (75, 150, 300)
HORIZON_LAG = 16
EXPONENTS = np.round(np.arange(-1.0, 3.0001, 0.05), 2)
_OPEN = len(LADDER)


def run_table(results: Path) -> pd.DataFrame:
    """One row per run: where, at which rate, how it ended, and what it earned."""
    loaded = load(results)
    table = events(loaded)
    table = table[~table["event"].isin(UNDECIDED)].copy()
    last = (
        loaded.evals.sort_values("step").groupby("key")["sampled_reward"].apply(lambda curve: curve.tail(LAST).mean())
    )
    means = loaded.steps.groupby("key")[["step_scale", "ess_ratio"]].mean()
    table["final_reward"] = table["key"].map(last)
    table["mean_step_scale"] = table["key"].map(means["step_scale"])
    table["mean_ess"] = table["key"].map(means["ess_ratio"])
    table["rung"] = [rung_of(rate) for rate in table["lr"]]
    return table[_COLUMNS].sort_values([*PLACE, "rung"]).reset_index(drop=True)


def shipped(path: Path) -> pd.DataFrame:
    """The runs of a shipped table; none where there is no table yet."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=_COLUMNS)


def joined(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The runs of two tables; where both have a run, that of the second."""
    whole = pd.concat([table for table in (old, new) if len(table)] or [old], ignore_index=True)
    whole = whole.drop_duplicates([*PLACE, "rung"], keep="last")
    return whole.sort_values([*PLACE, "rung"]).reset_index(drop=True)


def rung_of(lr: float) -> int:
    """The rung of a learning rate.

    Raises:
        ValueError: It is not on the ladder.
    """
    return [f"{rate:.3e}" for rate in LADDER].index(f"{lr:.3e}")


def outcomes(runs: pd.DataFrame, horizon: float = np.inf) -> dict[Unit, dict[int, bool]]:
    """Whether each run had failed by an update, by unit and rung."""
    found: dict[Unit, dict[int, bool]] = {}
    for row in runs.to_dict("records"):
        unit = Unit(*(row[name] for name in PLACE))
        found.setdefault(unit, {})[row["rung"]] = row["failed"] and not row["onset"] > horizon
    return found


def own_searches(runs: pd.DataFrame) -> dict[Unit, Search]:
    """The search of every unit that has runs, replayed."""
    found = outcomes(runs)
    return searches(found, sorted(found))


def complete(runs: pd.DataFrame, plan: Plan = PLAN) -> list[int]:
    """The seeds all of whose searches have ended."""
    seeds = sorted(int(seed) for seed in runs["seed"].unique())
    ended: dict[int, bool] = dict.fromkeys(seeds, True)
    for unit, own in searches(outcomes(runs), [unit for seed in seeds for unit in plan.units(seed)]).items():
        ended[unit.seed] &= own.wanted is None
    return [seed for seed in seeds if ended[seed]]


def counted(runs: pd.DataFrame, plan: Plan = PLAN) -> pd.DataFrame:
    """The runs of complete seeds, which alone count."""
    return runs[runs["seed"].isin(complete(runs, plan))]


def boundaries(runs: pd.DataFrame, horizon: float | None = None) -> pd.DataFrame:
    """Per unit the bounds of log2 b, in rungs (infinite at an end of the ladder).

    They are those of the unit's own search; with a horizon, of all of its runs: what survives fewer updates lies above
    the end of the search.

    Columns besides: `onset` of the failing run beside the boundary; `reward` and `event` of the surviving one;
    `best_reward` of the surviving runs.
    """
    at = {tuple(row[name] for name in (*PLACE, "rung")): row for row in runs.to_dict("records")}
    own = {unit: search.outcomes for unit, search in own_searches(runs).items()}
    rows = [_bounds(unit, ended, at) for unit, ended in (own if horizon is None else outcomes(runs, horizon)).items()]
    return pd.DataFrame(rows).sort_values(PLACE).reset_index(drop=True)


def _bounds(unit: Unit, ended: Outcomes, at: Mapping[tuple[Any, ...], Mapping[Any, Any]]) -> dict[str, Any]:
    low, high = bracket(ended)
    place = dict(zip(PLACE, astuple(unit), strict=True))
    rewards = {rung: at[*astuple(unit), rung]["final_reward"] for rung, lost in ended.items() if not lost}
    return (
        place
        | {"low": -np.inf if low == -1 else low, "high": np.inf if high == _OPEN else high}
        | {"onset": at[*astuple(unit), high]["onset"] if high < _OPEN else np.nan}
        | {"reward": rewards.get(low, np.nan), "best_reward": max(rewards.values(), default=np.nan)}
        | {"event": at[*astuple(unit), low]["event"] if low > -1 else ""}
    )


def exponents(bounds: pd.DataFrame) -> pd.DataFrame:
    """Exponent a of b ~ S^-a for each task and method, with the lag asked for and with the lag reached.

    The model takes the lags of a seed as independent. They share its prompts, and two runs that fall before their lags
    are reached may be one. `without_one_low` and `without_one_high` are the least and the largest exponent without one
    of the seeds; `seeds_low` and `seeds_high` a 95% t interval from whole seeds drawn anew (NaN with few).
    """
    rows = []
    for (task, method), group in bounds[bounds["staleness"].isin(LAGS)].groupby(["task", "method"], sort=False):
        reached = group["staleness"].clip(upper=group["onset"].fillna(np.inf))
        for lag, values in (("asked", group["staleness"]), ("reached", reached)):
            rows.append({"task": task, "method": method, "lag": lag} | _exponent(group, values.clip(lower=1.0)))
    return pd.DataFrame(rows)


def _exponent(group: pd.DataFrame, lags: pd.Series[float]) -> dict[str, object]:
    open_ends = group[["low", "high"]].abs().eq(np.inf).any(axis=1)
    facts: dict[str, object] = {"units": len(group), "at_end": int(open_ends.sum())}
    censored = open_ends.groupby(group["staleness"]).mean() > 0.5
    if censored.sum() >= 2:
        return facts | {"exponent": np.nan, "low": np.nan, "high": np.nan, "verdict": "at an end of the ladder"}
    low, high, steep = group["low"].to_numpy(float), group["high"].to_numpy(float), -np.log2(lags.to_numpy(float))
    found = estimate(low, high, steep, EXPONENTS)
    facts |= {"exponent": found.value, "low": found.low, "high": found.high}
    without = slopes(low, high, steep, _one_left_out(group["seed"]), EXPONENTS)
    facts |= {"without_one_low": without.min(), "without_one_high": without.max()}
    drawn = slopes(low, high, steep, resampled(group["seed"].to_numpy(), np.random.default_rng(0)), EXPONENTS)
    half = reach(drawn, group["seed"].nunique()) if len(drawn) else np.nan
    facts |= {"seeds_low": found.value - half, "seeds_high": found.value + half}
    return facts | {"verdict": _law(found.low, found.high)}


def _one_left_out(seeds: pd.Series[int]) -> np.ndarray:
    """`[seeds, n]` weights of the values of all seeds but one."""
    return np.stack([(seeds != each).to_numpy(float) for each in seeds.unique()])


def _law(low: float, high: float, bar: tuple[float, float] = (0.75, 1.25)) -> str:
    if bar[0] <= low and high <= bar[1]:
        return "holds"
    return "refuted" if high < bar[0] or low > bar[1] else "undecided"
