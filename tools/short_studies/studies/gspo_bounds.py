"""At which bounds GSPO clips a sensible share of short responses, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from short_studies.contrasts import contrast, judged, mean_row
from short_studies.study import PLACE, QUANTITIES, Study, Tables, short
from vcpo_bench.bench.cells.grid_spec import GridSpec

STEPS, RATE, SEEDS, TASKS, LAGS = 150, 3e-4, tuple(range(500, 506)), ("walk", "walk-eos", "chain"), (1, 16)
PUBLISHED = "gspo"
METHODS = (
    PUBLISHED,
    "gspo(high=0.004,low=0.003)",
    "gspo(high=0.013,low=0.01)",
    "gspo(high=0.04,low=0.03)",
    "gspo(high=0.13,low=0.1)",
    "gspo(high=0.4,low=0.3)",
)
"""From the tightest bounds to the widest."""
LEAST, MOST = 0.05, 0.3
"""Share of clipped tokens that counts as sensible."""


def grids() -> Iterator[GridSpec]:
    """One grid."""
    yield GridSpec(METHODS, LAGS, SEEDS, TASKS, (RATE,), ("fifo",), settings=short(STEPS, 16), controls=False)


def tables(runs: pd.DataFrame) -> Tables:
    """The shares, and the rewards against those of the published bounds."""
    return {"shares": shares(runs), "contrasts": contrasts(runs)}


def shares(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of clipped tokens per task, lag and bounds, with its 95% t interval over seeds, and the registered word."""
    rows = []
    for (task, lag, method), own in _places(runs):
        row = {"task": task, "lag_asked": lag, "method": method} | mean_row(own["clipped"], "clipped")
        row |= {"verdict": told(row["low"], row["high"]), "reward": own["final_reward"].mean()}
        row |= {"start": own["start_reward"].mean(), "failed": f"{int(own['failed'].sum())} of {len(own)}"}
        rows.append(row | {name: own[name].mean() for name in ("ess", "lag")})
    return pd.DataFrame(rows)


def told(low: float, high: float) -> str:
    """Where an interval lies: `within` the sensible shares, `above` or `below` them, else `undecided`."""
    if low > MOST:
        return "above"
    if high < LEAST:
        return "below"
    return "within" if low >= LEAST and high <= MOST else "undecided"


def contrasts(runs: pd.DataFrame) -> pd.DataFrame:
    """Final reward with each bounds minus that with the published ones, paired by seed; all of one family."""
    rows = []
    for (task, lag), own in runs.groupby(["task", "staleness"], sort=False):
        rewards = {name: table.set_index("seed")["final_reward"] for name, table in own.groupby("method")}
        for other in METHODS[1:]:
            facts = {"task": task, "lag_asked": lag, "contrast": f"{other} - {PUBLISHED}"}
            rows.append(facts | contrast(rewards[other], rewards[PUBLISHED]))
    return judged(pd.DataFrame(rows), "higher", "lower")


def _places(runs: pd.DataFrame) -> Iterator[tuple[tuple[str, int, str], pd.DataFrame]]:
    order = runs.assign(rank=runs["method"].map(METHODS.index)).sort_values(["task", "staleness", "rank"])
    for _, own in order.groupby(["task", "staleness", "method"], sort=False):
        one = own.iloc[0]
        yield (str(one["task"]), int(one["staleness"]), str(one["method"])), own


def tightest(table: pd.DataFrame) -> str:
    """The tightest bounds that are `within` on every task at the smallest lag; empty: none are."""
    at = table[table["lag_asked"] == min(LAGS)]
    for method in METHODS:
        if set(at.loc[at["method"] == method, "verdict"]) == {"within"}:
            return method
    return ""


def answer(made: Tables) -> list[str]:
    """Which bounds clip a sensible share where, which are the tightest such, and what they are worth."""
    table, gaps = made["shares"], made["contrasts"]
    lines = []
    for (task, lag), own in table.groupby(["task", "lag_asked"], sort=False):
        said = [f"`{row['method']}` {row['clipped']:.0%} (**{row['verdict']}**)" for row in own.to_dict("records")]
        lines.append(f"`{task}` at lag {lag}, share of clipped tokens: {', '.join(said)}.")
    chosen = tightest(table)
    lines.append(
        f"The tightest bounds that are within {LEAST:.0%} to {MOST:.0%} on every task at lag {min(LAGS)}: "
        f"{f'`{chosen}`' if chosen else 'none'}."
    )
    counts = gaps.groupby("contrast", sort=False)["verdict"].value_counts().unstack(fill_value=0)
    for name, row in counts.iterrows():
        said = ", ".join(f"{verdict} in {number}" for verdict, number in row.items() if number)
        lines.append(f"Final reward, `{name}`: {said} of {row.sum()} places.")
    return lines


STUDY = Study(
    "gspo-bounds",
    6,
    tuple(grids()),
    12,
    ("shares", "contrasts"),
    tables,
    answer,
    PLACE,
    {**QUANTITIES, "clipped": "share_clipped"},
)
