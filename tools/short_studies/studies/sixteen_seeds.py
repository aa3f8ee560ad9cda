"""Two contrasts that rested on four seeds under rules 1.0, over 16 seeds under the current ones."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from short_studies.contrasts import contrast, judged, mean_row
from short_studies.study import Study, Tables, short
from vcpo_bench.bench.cells.grid_spec import GridSpec

STEPS, RATE, SEEDS, TASKS = 300, 3e-4, tuple(range(300, 316)), ("walk",)
SAME_MEAN, SAME_SCALES = "vcpo(ess=off)+lr-matched", "vcpo(ess=off)+lr-shuffled"
PAIRS = {64: ("vcpo", (SAME_MEAN, SAME_SCALES)), 16: ("clip+ess", ("clip",))}
"""By lag: a method and what it is compared with."""


def grids() -> Iterator[GridSpec]:
    """One grid per lag."""
    for lag, (one, others) in PAIRS.items():
        yield GridSpec(
            (one, *others), (lag,), SEEDS, TASKS, (RATE,), ("fifo",), settings=short(STEPS, 16), controls=False
        )


def tables(runs: pd.DataFrame) -> Tables:
    """The contrasts, and what each method did."""
    return {"contrasts": contrasts(runs), "methods": methods(runs)}


def contrasts(runs: pd.DataFrame) -> pd.DataFrame:
    """Final reward of the first method of each pair minus that of the second, per task, all of them in one family."""
    rows = []
    for (_, task), own in runs.groupby(["staleness", "task"], sort=False):
        lag = int(own["staleness"].iloc[0])
        rewards = {name: table.set_index("seed")["final_reward"] for name, table in own.groupby("method")}
        one, others = PAIRS[lag]
        for other in others:
            facts = {"task": task, "lag_asked": lag, "contrast": f"{one} - {other}"}
            rows.append(facts | contrast(rewards[one], rewards[other]))
    return judged(pd.DataFrame(rows), "higher", "lower")


def methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Reward, failures, step scale, ESS and realized lag per task and method."""
    rows = []
    for (task, lag, method), own in runs.groupby(["task", "staleness", "method"], sort=False):
        row = {"task": task, "lag_asked": lag, "method": method} | mean_row(own["final_reward"], "reward")
        row |= {"start": own["start_reward"].mean(), "failed": f"{int(own['failed'].sum())} of {len(own)}"}
        rows.append(row | {name: own[name].mean() for name in ("step_scale", "ess", "lag")})
    return pd.DataFrame(rows)


def answer(made: Tables) -> list[str]:
    """Each contrast with its verdict."""
    return [
        f"`{row['task']}` at lag {row['lag_asked']}, `{row['contrast']}`: {row['difference']:+.3f} "
        f"[{row['low']:.3f}, {row['high']:.3f}], **{row['verdict']}**."
        for row in made["contrasts"].to_dict("records")
    ]


STUDY = Study("sixteen-seeds", 4, tuple(grids()), 24, ("contrasts", "methods"), tables, answer)
