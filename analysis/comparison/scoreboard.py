"""The scoreboard: one row per method and lag (and task and learning rate), with intervals over seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events, lag_at_onset
from vcpo_bench.analysis.csv_text import without_formulas
from vcpo_bench.analysis.final_reward import final_rewards
from vcpo_bench.analysis.intervals import reward_interval
from vcpo_bench.analysis.results import GROUP, Results
from vcpo_bench.files.atomic import replacing

ODD_ENDS = ("nan", "stopped_by", "error", "partial", "damaged")
"""Columns of `scoreboard` that count cells that did not run to completion or cannot be read."""


def cell_summary(results: Results) -> pd.DataFrame:
    """One row per cell: the columns of `results.cells` plus what its curves say.

    Added: `final_reward` and `final_greedy` (`analysis.final_reward`), `best_reward` (of the best evaluation),
    `final_step`, `start_reward`, `median_ess` (raw ESS ratio, median over the updates before a failure:
    a policy that has failed may look on-policy again),
    `lag_mean` and `lag_max` (realized), `lag_at_onset` (realized where a failure began); the verdict of `events` in
    `event`, `onset` (NaN without one),
    `last_step`, and `collapsed` (collapse, with or without rebound, or nan).
    """
    return results.cells.merge(_curve_facts(results), how="left", left_on="key", right_index=True)


def _curve_facts(results: Results) -> pd.DataFrame:
    """What `cell_summary` adds to the cells: one row per cell, by its key."""
    evals = results.evals.sort_values(["key", "step"], kind="stable").groupby("key", sort=False)
    judged = events(results)
    verdicts = judged.set_index("key")[["event", "onset", "last_step", "collapsed"]]
    steps = results.step_columns("step", "ess_ratio", "lag_mean", "lag_max")
    by_key = steps.groupby("key", sort=False)
    down = steps["step"] >= steps["key"].map(verdicts["onset"])
    summary = pd.DataFrame(
        {
            "final_reward": final_rewards(results.evals),
            "final_greedy": final_rewards(results.evals, "greedy_reward"),
            "final_step": evals["step"].last(),
            "best_reward": evals["sampled_reward"].max(),
            "start_reward": evals["sampled_reward"].first(),
        }
    )
    recorded = pd.DataFrame(
        {
            "median_ess": steps[~down].groupby("key", sort=False)["ess_ratio"].median(),
            "lag_mean": by_key["lag_mean"].mean(),
            "lag_max": by_key["lag_max"].max(),
            "lag_at_onset": lag_at_onset(results, judged),
        }
    )
    return pd.concat([summary.reindex(verdicts.index), recorded.reindex(verdicts.index), verdicts], axis=1)


def scoreboard(results: Results) -> pd.DataFrame:
    """One row per task, method, regime, lag and learning rate, controls last.

    Columns: the group (`analysis.results.GROUP`); `seeds` (cells with an evaluation); `final_reward`,
    `best_reward` with `_low` and `_high` (95% Student-t interval over seeds, within [0, 1] where the rewards are; NaN
    below `ENOUGH` seeds; the best evaluation is optimistic: the maximum of noisy values); `final_greedy`; `median_ess`;
    `nan`, `stopped_by`, `error`, `partial`, `damaged` (a file of it cannot be read) counts of `total` cells, of which
    the collapse rule could judge `judged`, and `collapsed` (collapse, with or without rebound, or nan) of those;
    `lag_mean` and `lag_max` as realized; `lag_at_onset`, the mean realized lag at which failures began.
    A cell that ended as nan or was stopped counts with its last evaluations; one that ended in an error is counted but
    has no part in the rewards.
    """
    summary = cell_summary(results)
    damaged = results.damaged_keys()
    rows = []
    for group, cells in summary.groupby(GROUP, sort=False, dropna=False):
        scored = cells[(cells["status"] != "error") & cells["final_reward"].notna()]
        row = dict(zip(GROUP, group, strict=True)) | {"seeds": len(scored)}
        for name in ("final_reward", "best_reward"):
            values = scored[name].to_numpy(dtype=np.float64)
            low, high = reward_interval(values)
            row |= {name: values.mean() if values.size else np.nan, f"{name}_low": low, f"{name}_high": high}
        row |= {"final_greedy": scored["final_greedy"].mean(), "median_ess": scored["median_ess"].median()}
        row |= {"total": len(cells), "collapsed": int(cells["collapsed"].sum())}
        row |= {"judged": int((~cells["event"].isin(UNDECIDED)).sum())}
        row |= {status: int((cells["status"] == status).sum()) for status in ODD_ENDS}
        row["damaged"] = int(cells["key"].isin(damaged).sum())
        row |= {"lag_mean": cells["lag_mean"].mean(), "lag_max": cells["lag_max"].max()}
        row["lag_at_onset"] = cells["lag_at_onset"].mean()
        rows.append(row)
    order = ["task", "lr", "staleness", "control", "final_reward"]
    return pd.DataFrame(rows).sort_values(order, ascending=[True, True, True, True, False], ignore_index=True)


def write_csv(board: pd.DataFrame, path: str | Path) -> None:
    """Write the scoreboard as CSV with six significant digits."""
    with replacing(Path(path)) as file:
        without_formulas(board).to_csv(file, index=False, float_format="%.6g")
