"""Fixes at the sampler against corrections in the loss: method x engine x lag 0 and 16."""

from __future__ import annotations

import pandas as pd

from short_studies.contrasts import contrast, judged, mean_row
from short_studies.study import SEEDS, TASKS, Study, Tables, short
from vcpo_bench.bench.cells.grid_spec import GridSpec

STEPS, RATE, LAGS = 80, 2e-4, (0, 16)
NONE = "reinforce"
IN_LOSS = ("token-tis", "tis", "icepop", "vcpo")
EXACT = "fifo"
ENGINES = {
    EXACT: "exact",
    "fifo(engine_noise=bf16)": "bf16",
    "fifo(engine_noise=fp16)": "fp16",
    "fifo(top_p=0.8)": "top-p",
    "fifo(mask_replay=on,top_p=0.8)": "top-p, replayed",
}
"""Regime expression and what it is called on the page."""
MISMATCHES = {"bf16": "fp16", "top-p": "top-p, replayed"}
"""Each engine that disagrees with the learner, and its fix at the sampler."""


def tables(runs: pd.DataFrame) -> Tables:
    """The gaps of the engines, the harm, what fixes it, and every setting of the factorial."""
    named = runs.assign(engine=runs["regime"].map(ENGINES))
    return {"gaps": gaps(named), "harm": harm(named), "cures": cures(named), "rewards": rewards(named)}


def gaps(runs: pd.DataFrame) -> pd.DataFrame:
    """What separates sampler and learner, per engine and lag, without any correction."""
    rows = []
    for (task, lag, engine), own in _in_order(runs[runs["method"] == NONE]):
        facts = {"task": task, "lag": lag, "engine": engine, "realized_lag": own["lag"].mean()}
        rows.append(facts | {"ess": own["ess"].mean()} | mean_row(own["kl"] * 1e3, "kl_in_1e-3_nats"))
    return pd.DataFrame(rows)


def harm(runs: pd.DataFrame) -> pd.DataFrame:
    """What each mismatch costs in reward without any correction, and what its fix at the sampler gives back."""
    rows = []
    for task, lag in _places(runs):
        value = _values(runs, task, lag)
        for mismatch, fix in MISMATCHES.items():
            mismatched = value[NONE, mismatch]
            for name, one, other in (
                (f"{mismatch} - exact", mismatched, value[NONE, EXACT_NAME]),
                (f"{fix} - {mismatch}", value[NONE, fix], mismatched),
                (f"{fix} - exact", value[NONE, fix], value[NONE, EXACT_NAME]),
            ):
                rows.append({"task": task, "lag": lag, "effect": name} | contrast(one, other))
    return judged(pd.DataFrame(rows), "higher", "lower")


def cures(runs: pd.DataFrame) -> pd.DataFrame:
    """Plain REINFORCE with the fix at the sampler, minus a correction in the loss with the mismatched engine."""
    rows = []
    for task, lag in _places(runs):
        value = _values(runs, task, lag)
        for mismatch, fix in MISMATCHES.items():
            for method in IN_LOSS:
                facts = {"task": task, "lag": lag, "mismatch": mismatch, "correction_in_loss": method}
                rows.append(facts | contrast(value[NONE, fix], value[method, mismatch]))
    return judged(pd.DataFrame(rows), "sampler better", "loss better")


def rewards(runs: pd.DataFrame) -> pd.DataFrame:
    """Every setting of the factorial: final reward, and how many runs failed."""
    rows = []
    for (task, lag, engine), own in _in_order(runs):
        for method in (NONE, *IN_LOSS):
            runs_of = own[own["method"] == method]
            facts = {"task": task, "lag": lag, "engine": engine, "method": method}
            rows.append(
                facts
                | mean_row(runs_of["final_reward"], "reward")
                | {"failed": f"{int(runs_of['failed'].sum())} of {len(runs_of)}"}
            )
    return pd.DataFrame(rows)


def answer(made: Tables) -> list[str]:
    """Per mismatch and lag: what it costs, task by task, and whether the sampler or the loss is the better place."""
    costs = made["harm"][made["harm"]["effect"].isin([f"{mismatch} - exact" for mismatch in MISMATCHES])]
    lines = [
        f"`{row['task']}`, lag {row['lag']}, {row['effect']} without a correction: {row['difference']:+.3f} "
        f"[{row['low']:.3f}, {row['high']:.3f}], {row['verdict']}."
        for row in costs.to_dict("records")
    ]
    lines += [
        f"`{task}`, lag {lag}, fix at the sampler against correction in the loss, {len(own)} comparisons: "
        f"{_counted(own['verdict'])}."
        for (task, lag), own in made["cures"].groupby(["task", "lag"])
    ]
    return [*lines, LAG_TOO]


def _counted(verdicts: pd.Series) -> str:
    counts = verdicts.value_counts()
    return ", ".join(f"{verdict} {counts[verdict]}" for verdict in counts.index)


LAG_TOO = (
    "At lag 16 a method corrects the lag besides the mismatch, and a fix at the sampler only the mismatch: "
    "*loss better* there says that the lag costs more than these mismatches, and nothing against the fix."
)

EXACT_NAME = ENGINES[EXACT]


def _values(runs: pd.DataFrame, task: str, lag: int) -> dict[tuple[str, str], pd.Series]:
    """Final rewards by seed, per method and engine."""
    own = runs[(runs["task"] == task) & (runs["staleness"] == lag)]
    return {
        (str(method), str(engine)): group.set_index("seed")["final_reward"]
        for (method, engine), group in own.groupby(["method", "engine"])
    }


def _places(runs: pd.DataFrame) -> list[tuple[str, int]]:
    found = runs[["task", "staleness"]].drop_duplicates().sort_values(["task", "staleness"])
    return [(str(task), int(lag)) for task, lag in found.itertuples(index=False)]


def _in_order(runs: pd.DataFrame) -> list[tuple[tuple[str, int, str], pd.DataFrame]]:
    return [
        ((task, lag, engine), runs[(runs["task"] == task) & (runs["staleness"] == lag) & (runs["engine"] == engine)])
        for task, lag in _places(runs)
        for engine in ENGINES.values()
    ]


GRID = GridSpec((NONE, *IN_LOSS), LAGS, SEEDS, TASKS, (RATE,), tuple(ENGINES), settings=short(STEPS), controls=False)
STUDY = Study("cures", 2, (GRID,), 3.2, ("gaps", "harm", "cures", "rewards"), tables, answer)
