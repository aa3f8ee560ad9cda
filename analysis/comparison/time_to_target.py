"""How long until a run reaches a share of the synchronous gain? Updates and seconds, with censoring."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.survival import kaplan_meier, median_survival, restricted_mean
from vcpo_bench.analysis.comparison.normalized_rewards import NormalizedRewards
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.tolerance import EQUAL

_PHASES = [f"seconds_{phase}" for phase in ("sample", "score", "update", "record", "wait")]
"""What an update waits for; `seconds_in_flight` and `seconds_in_queue` pass while others train."""

TARGETS = (0.5, 0.75, 0.9)
"""Normalized rewards: shares of the way from the start policy to the best synchronous training."""


def target_times(results: Results, rewards: NormalizedRewards) -> pd.DataFrame:
    """When each run reached each target.

    A target counts as reached at the second of two evaluations in a row whose mean reaches it, so that one lucky
    evaluation is not enough. Columns: `key`, `target`, `reached`, `updates`, `seconds` (training time only,
    without evaluations; NaN where the steps cannot be read), `budget` (updates). Where it is not reached, `updates` is
    the whole budget and `seconds` the time of the whole run: a collapsed run is not merely unobserved.
    """
    seconds = _clock(results)
    planned = results.cells.set_index("key")["steps"]
    usable = rewards.anchors[rewards.anchors["usable"]].set_index("task")
    task = dict(zip(rewards.table["key"], rewards.table["task"], strict=True))
    rows = []
    for key, evals in results.evals.sort_values(["key", "step"]).groupby("key", sort=False):
        if task[str(key)] not in usable.index:
            continue
        anchor = usable.loc[task[str(key)]]
        reward = (evals["sampled_reward"].to_numpy() - anchor["start"]) / (anchor["sync"] - anchor["start"])
        smooth = np.array([np.nan, *[(a + b) / 2 for a, b in pairwise(reward)]])
        at, clock = evals["step"].to_numpy(), seconds.get(str(key), np.array([np.nan]))
        for target in TARGETS:
            hits = np.flatnonzero(smooth >= target - EQUAL)
            budget = int(max(planned[key], at[-1]))
            updates = int(at[hits[0]]) if hits.size else budget
            spent = clock[min(updates, len(clock) - 1)]
            rows.append((key, target, bool(hits.size), updates, float(spent), budget))
    return pd.DataFrame(rows, columns=["key", "target", "reached", "updates", "seconds", "budget"])


def target_table(times: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Time to target per method and lag.

    Args:
        times: Of `target_times`.
        runs: The runs to summarize (those at best learning rates), with `key`, `method`, `staleness`.

    Returns:
        Columns `staleness`, `method`, `target`, `reached`, `total`, `median_updates` and
        `median_seconds` (the time by which half of all runs had reached it; infinite when fewer than half ever did) and
        `mean_updates` with `_low` and `_high`: the mean restricted to the shortest budget among the runs, with 95%
        interval.
    """
    joined = times.merge(runs[["key", "method", "staleness"]], on="key")
    rows = []
    for (lag, method, target), part in joined.groupby(["staleness", "method", "target"]):
        updates = kaplan_meier(part["updates"], part["reached"])
        mean, low, high = restricted_mean(updates, float(joined["budget"].min()))
        rows.append(
            {
                "staleness": lag,
                "method": method,
                "target": target,
                "reached": int(part["reached"].sum()),
                "total": len(part),
                "median_updates": _median(part["updates"], part["reached"]),
                "median_seconds": _median(part["seconds"], part["reached"]),
                "mean_updates": mean,
                "mean_updates_low": low,
                "mean_updates_high": high,
            }
        )
    columns = ["staleness", "method", "target", "reached", "total", "median_updates", "median_seconds", "mean_updates"]
    return pd.DataFrame(rows, columns=[*columns, "mean_updates_low", "mean_updates_high"])


def _median(time: pd.Series, reached: pd.Series) -> float:
    """Time by which half of the runs reached the target. One that never did stays at risk, however soon it ended.

    Censored where it ended, a run that failed early would leave the risk set and make the others look faster.
    """
    known = time.notna()
    return median_survival(kaplan_meier(time.where(reached, np.inf)[known], reached[known]))


def _clock(results: Results) -> dict[str, np.ndarray]:
    """Seconds of training before update t, of every cell: entry 0 is 0."""
    steps = results.step_columns(*_PHASES)
    spent = steps[_PHASES].sum(axis=1)
    return {
        str(key): np.concatenate([[0.0], np.cumsum(one.to_numpy())])
        for key, one in spent.groupby(steps["key"].to_numpy(), sort=False)
    }
