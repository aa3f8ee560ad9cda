"""What the fill of the pipeline and the warm-up of the learning rate do to a run whose learning rate is too high."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from short_studies.contrasts import contrast, judged
from short_studies.study import PLACE, Study, Tables
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

STEPS, RATE, SEEDS, TASKS = 120, 1e-3, tuple(range(400, 408)), ("walk", "chain")
METHODS, LAGS, WARMUPS = ("reinforce", "vcpo"), (1, 16, 64), (0, 20)
RAMP, HOLD = "fifo", "fifo(fill=hold)"
OF_WARMUP = {
    "warm-up - none, lags 16 and 64": ("early", (16, 64)),
    "warm-up - none, lag 1": ("failed", (1,)),
}
"""Effects of the warm-up on a share of runs: its name, the share, and over which lags."""


def grids() -> Iterator[GridSpec]:
    """One grid per warm-up; a pipeline of lag 1 is full after one update, so there only one fill is run."""
    for warmup in WARMUPS:
        settings = CellSettings(steps=STEPS, prompts=8, eval_every=10, lr_warmup=warmup)
        for regime, lags in ((RAMP, LAGS), (HOLD, LAGS[1:])):
            yield GridSpec(METHODS, lags, SEEDS, TASKS, (RATE,), (regime,), settings=settings, controls=False)


def tables(runs: pd.DataFrame) -> Tables:
    """What the warm-up and the fill change, and every setting."""
    marked = runs.assign(early=runs["failed"] & (runs["onset"] < runs["staleness"]))
    return {"effects": effects(marked), "settings": settings_table(marked)}


def effects(runs: pd.DataFrame) -> pd.DataFrame:
    """Paired differences of the shares of runs, one value per seed and task; all of one family.

    Returns:
        Besides the columns of `contrasts.judged`: `p_exact`, two-sided over all sign flips of the seeds' differences,
        not adjusted and without a verdict. Where no seed differs, the verdict is `same fates`: such a row is no test.
    """
    rows = []
    for task, own in runs.groupby("task", sort=False):
        grown = own[own["regime"] == RAMP]
        for name, (share, lags) in OF_WARMUP.items():
            there = grown[grown["staleness"].isin(lags)]
            rows.append({"task": task, "effect": name, "of": share} | _difference(there, share, "lr_warmup", (20, 0)))
        late = own[(own["staleness"] > 1) & (own["lr_warmup"] == 20)]
        for share in ("early", "failed"):
            facts = {"task": task, "effect": "hold - ramp, warm-up 20", "of": share}
            rows.append(facts | _difference(late, share, "regime", (HOLD, RAMP)))
    found = judged(pd.DataFrame(rows), "higher", "lower")
    return found.assign(verdict=found["verdict"].mask((found["low"] == 0) & (found["high"] == 0), "same fates"))


def _difference(runs: pd.DataFrame, share: str, by: str, levels: tuple[object, object]) -> dict[str, float]:
    one, other = (runs[runs[by] == level].groupby("seed")[share].mean() for level in levels)
    apart = (one - other).to_numpy(float)
    flips = stats.permutation_test((apart,), np.mean, permutation_type="samples", n_resamples=2**apart.size)
    return contrast(one, other) | {"p_exact": float(flips.pvalue)}


def settings_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Per setting: failures, how many of them while the pipeline filled, the median onset."""
    rows = []
    for (task, method, lag, regime, warmup), own in runs.groupby(
        ["task", "method", "staleness", "regime", "lr_warmup"], sort=False
    ):
        row = {"task": task, "method": method, "lag_asked": lag, "fill": "hold" if regime == HOLD else "ramp"}
        row |= {"warmup": warmup, "failed": f"{int(own['failed'].sum())} of {len(own)}"}
        row |= {"while_filling": int(own["early"].sum()), "median_onset": own.loc[own["failed"], "onset"].median()}
        rows.append(row | {"lag": own["lag"].mean(), "reward": own["final_reward"].mean()})
    return pd.DataFrame(rows)


def answer(made: Tables) -> list[str]:
    """Each effect with its verdict, and per method how many runs failed, also before their lag was reached."""
    lines = [
        f"`{row['task']}`, {row['effect']}, share of runs that {SAID[row['of']]}: {row['difference']:+.2f} "
        f"[{row['low']:.2f}, {row['high']:.2f}], **{row['verdict']}**."
        for row in made["effects"].to_dict("records")
    ]
    table = made["settings"]
    for method, warmup in product(METHODS, WARMUPS):
        own = table[(table["method"] == method) & (table["warmup"] == warmup)]
        own = own[(own["fill"] == "ramp") & (own["lag_asked"] > 1)]
        failed, runs = np.array([str(text).split(" of ") for text in own["failed"]], int).sum(0)
        lines.append(
            f"`{method}`, warm-up of {warmup} updates, lags 16 and 64: {failed} of {runs} runs fail, "
            f"{own['while_filling'].sum()} of them before the requested lag is reached."
        )
    return lines


SAID = {"early": "fail before the lag is reached", "failed": "fail"}
SHOWN = ("effects", "settings")
STUDY = Study("cold-start", 5, tuple(grids()), 5, SHOWN, tables, answer, (*PLACE, "lr_warmup"))
