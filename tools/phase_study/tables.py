"""The tables that ship with the phase study: one row per run, from a results folder; all others follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
from boundary import estimate
from design import LADDER, LAGS, Outcomes, Unit, bracket, guess, next_rung, units

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.results import load

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


def complete(runs: pd.DataFrame) -> list[int]:
    """The seeds all of whose searches have ended."""
    found = outcomes(runs)
    seeds = sorted(int(seed) for seed in runs["seed"].unique())
    return [seed for seed in seeds if not any(_open(unit, found) for unit in units(seed))]


def _open(unit: Unit, found: dict[Unit, dict[int, bool]]) -> bool:
    return next_rung(unit, found.get(unit, {}), guess(unit, found)) is not None


def boundaries(runs: pd.DataFrame, horizon: float = np.inf) -> pd.DataFrame:
    """Per unit the bounds of log2 b, in rungs (infinite at an end of the ladder), and the failing run's onset."""
    at = {tuple(row[name] for name in (*PLACE, "rung")): row for row in runs.to_dict("records")}
    rows = []
    for unit, ended in outcomes(runs, horizon).items():
        place = dict(zip(PLACE, astuple(unit), strict=True))
        low, high = bracket(ended)
        rewards = {rung: at[*astuple(unit), rung]["final_reward"] for rung, lost in ended.items() if not lost}
        rows.append(
            place
            | {"low": -np.inf if low == -1 else low, "high": np.inf if high == _OPEN else high}
            | {"onset": at[*astuple(unit), high]["onset"] if high < _OPEN else np.nan}
            | {"reward": rewards.get(low, np.nan), "best_reward": max(rewards.values(), default=np.nan)}
        )
    return pd.DataFrame(rows).sort_values(PLACE).reset_index(drop=True)


def exponents(bounds: pd.DataFrame) -> pd.DataFrame:
    """Exponent a of b ~ S^-a for each task and method, with the lag asked for and with the lag reached."""
    rows = []
    for (task, method), group in bounds[bounds["staleness"].isin(LAGS)].groupby(["task", "method"], sort=False):
        reached = group["staleness"].clip(upper=group["onset"].fillna(np.inf))
        for lag, values in (("asked", group["staleness"]), ("reached", reached)):
            rows.append({"task": task, "method": method, "lag": lag} | _exponent(group, values.clip(lower=1.0)))
    return pd.DataFrame(rows)


def _exponent(group: pd.DataFrame, lags: pd.Series[float]) -> dict[str, object]:
    ends = group[["low", "high"]].abs().eq(np.inf).any(axis=1)
    facts: dict[str, object] = {"units": len(group), "at_end": int(ends.sum())}
    censored = ends.groupby(group["staleness"]).mean() > 0.5
    if censored.sum() >= 2:
        return facts | {"exponent": np.nan, "low": np.nan, "high": np.nan, "verdict": "at an end of the ladder"}
    found = estimate(
        group["low"].to_numpy(float), group["high"].to_numpy(float), -np.log2(lags.to_numpy(float)), EXPONENTS
    )
    facts |= {"exponent": found.value, "low": found.low, "high": found.high}
    return facts | {"verdict": _law(found.low, found.high)}


def _law(low: float, high: float, bar: tuple[float, float] = (0.75, 1.25)) -> str:
    if bar[0] <= low and high <= bar[1]:
        return "holds"
    return "refuted" if high < bar[0] or low > bar[1] else "undecided"


def searches(runs: pd.DataFrame) -> Iterator[tuple[Unit, list[int], int | None]]:
    """Every unit with the rungs of its search in order, and its check run if it had one."""
    found = outcomes(runs)
    for unit, ended in found.items():
        seen: dict[int, bool] = {}
        check = None
        while (rung := next_rung(unit, seen, guess(unit, found))) is not None and rung in ended:
            if seen and _closed(seen):
                check = rung
                break
            seen[rung] = ended[rung]
        yield unit, list(seen), check


def _closed(ended: Outcomes) -> bool:
    low, high = bracket(ended)
    return high - low == 1


def checks(runs: pd.DataFrame) -> pd.DataFrame:
    """One row: how many check runs contradict the boundary of their unit."""
    found, contradicting, total = outcomes(runs), 0, 0
    for unit, rungs, check in searches(runs):
        if check is not None:
            low, _ = bracket({rung: found[unit][rung] for rung in rungs})
            total += 1
            contradicting += found[unit][check] == (check <= low)
    low, high = wilson(contradicting, total)
    return pd.DataFrame([{"checks": total, "contradicting": contradicting, "low": low, "high": high}])
