"""How long until a run reaches a share of the synchronous gain? Updates and seconds, with censoring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.survival import kaplan_meier, median_survival, restricted_mean
from vcpo_bench.analysis.comparison.normalized_rewards import NormalizedRewards
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import in_order, spans
from vcpo_bench.analysis.tolerance import EQUAL
from vcpo_bench.records.steps.timing import SPENT

TARGETS = (0.5, 0.75, 0.9)
"""Normalized rewards: shares of the way from the start policy to the best synchronous training."""


def target_times(results: Results, rewards: NormalizedRewards, targets: Sequence[float] = TARGETS) -> pd.DataFrame:
    """When each run reached each target.

    A target counts as reached at the second of two evaluations in a row whose mean reaches it, so that one lucky
    evaluation is not enough. Columns: `key`, `target`, `reached`, `updates`, `seconds` (training time only, without
    evaluations; NaN where the steps cannot be read, or have none), `budget` (updates), `trajectories` (consumed by
    then). Where it is not reached, `updates` is the whole budget and `seconds` the time of the whole run: a collapsed
    run is not merely unobserved. A cell that ended in an error, which says nothing of its method, is left out.

    Args:
        results: The cells.
        rewards: Their rewards, with the anchors.
        targets: Normalized rewards to reach.
    """
    seconds = _clock(results)
    cells = results.cells.drop_duplicates("key")
    failed = set(cells["key"][cells["status"] == "error"])
    sizes = cells["prompts"] * cells["responses"]
    plans = dict(zip(cells["key"], zip(cells["steps"], sizes, strict=True), strict=True))
    anchors = rewards.anchors[rewards.anchors["usable"]].set_index("task")[["start", "sync"]].T.to_dict()
    anchor = dict(zip(rewards.table["key"], map(anchors.get, rewards.table["task"]), strict=True))
    table = in_order(results.evals)
    step, sampled = table["step"].to_numpy(), table["sampled_reward"].to_numpy()
    rows = []
    for key, run in sorted(spans(table)):
        ends = anchor[key]
        if ends is None or key in failed:
            continue
        reward = (sampled[run] - ends["start"]) / (ends["sync"] - ends["start"])
        smooth = np.concatenate([[np.nan], (reward[:-1] + reward[1:]) / 2])
        at, clock = step[run], seconds.get(key, np.array([np.nan]))
        planned, batch = plans[key]
        budget = int(max(planned, at[-1]))
        for target in targets:
            hits = np.flatnonzero(smooth >= target - EQUAL)
            updates = int(at[hits[0]]) if hits.size else budget
            spent = clock[min(updates, len(clock) - 1)]
            rows.append((key, target, bool(hits.size), updates, float(spent), budget, float(updates * batch)))
    return pd.DataFrame(rows, columns=["key", "target", "reached", "updates", "seconds", "budget", "trajectories"])


def target_table(times: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Time to target per method and lag.

    Args:
        times: Of `target_times`.
        runs: The runs to summarize (those at best learning rates), with `key`, `method`, `staleness`.

    Returns:
        Columns `staleness`, `method`, `target`, `reached`, `total`, `median_updates` and
        `median_seconds` (the time by which half of all runs had reached it; infinite when fewer than half ever did) and
        `mean_updates` with `_low` and `_high`: the mean restricted to the shortest budget among the runs, with 95%
        interval from `ENOUGH` runs on.
    """
    joined = times.merge(runs[["key", "method", "staleness"]], on="key")
    rows = []
    for (lag, method, target), part in joined.groupby(["staleness", "method", "target"]):
        updates = kaplan_meier(part["updates"], part["reached"])
        mean, low, high = restricted_mean(updates, float(joined["budget"].min()))
        if len(part) < ENOUGH:
            low = high = float("nan")
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

    Censored where it ended, a run that failed early would leave the risk set and make the others look faster. NaN: no
    time is known.
    """
    known = time.notna()
    if not known.any():
        return float("nan")
    return median_survival(kaplan_meier(time.where(reached, np.inf)[known], reached[known]))


def _clock(results: Results) -> dict[str, np.ndarray]:
    """Seconds of training before update t, of every cell: entry 0 is 0. NaN where none were recorded."""
    steps = in_order(results.step_columns(*SPENT))
    virtual = results.cells["key"][results.cells["regime"].str.contains("clock=virtual", regex=False, na=False)]
    steps = steps.assign(seconds_wait=steps["seconds_wait"].mask(steps["key"].isin(virtual)))  # in its units
    spent = steps[list(SPENT)].sum(axis=1, min_count=1).to_numpy()
    return {key: np.concatenate([[0.0], np.cumsum(spent[rows])]) for key, rows in spans(steps)}
