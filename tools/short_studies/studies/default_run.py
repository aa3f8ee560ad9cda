"""The command of the README over more seeds than it runs: does its default setting tell methods apart?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pandas as pd

from short_studies.contrasts import contrast, judged, mean_row
from short_studies.study import Study, Tables
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

METHODS, LAGS, TASK, RATE = ("vcpo", "clip", "vespo"), (1, 16, 128), "walk", 3e-4
SEEDS = tuple(range(600, 616))


def grids() -> Iterator[GridSpec]:
    """The grid of the command, its controls included."""
    yield GridSpec(METHODS, LAGS, SEEDS, (TASK,), (RATE,), ("fifo",), settings=CellSettings(), controls=True)


def tables(runs: pd.DataFrame) -> Tables:
    """The contrasts of the three methods, and what each method did."""
    return {"contrasts": contrasts(runs), "methods": methods(runs)}


def contrasts(runs: pd.DataFrame) -> pd.DataFrame:
    """Final reward of one method minus that of another, per lag, paired by seed; all of one family."""
    rows = []
    for lag, own in runs[runs["method"].isin(METHODS)].groupby("staleness", sort=True):
        rewards = {name: table.set_index("seed")["final_reward"] for name, table in own.groupby("method")}
        for one, other in combinations(METHODS, 2):
            facts = {"lag_asked": lag, "contrast": f"{one} - {other}"}
            rows.append(facts | contrast(rewards[one], rewards[other]))
    return judged(pd.DataFrame(rows), "higher", "lower")


def methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Reward, failures, ESS and realized lag per method and lag; `reinforce` is the control.

    `onset`: updates at which its failures were found, from the first to the last; `rebound`: those not down at the end.
    """
    rows = []
    for (lag, method), own in runs.groupby(["staleness", "method"], sort=True):
        row = {"lag_asked": lag, "method": method} | mean_row(own["final_reward"], "reward")
        row |= {"start": own["start_reward"].mean(), "failed": f"{int(own['failed'].sum())} of {len(own)}"}
        onset = own["onset"].dropna().astype(int)
        row |= {"onset": f"{onset.min()} to {onset.max()}" if len(onset) else ""}
        row |= {"rebound": int((own["event"] == "collapse with rebound").sum())}
        rows.append(row | {name: own[name].mean() for name in ("ess", "lag")})
    return pd.DataFrame(rows)


def answer(made: Tables) -> list[str]:
    """Each contrast with its verdict, by lag, and at which lags methods are told apart."""
    lines, apart = [], []
    for lag, own in made["contrasts"].groupby("lag_asked", sort=True):
        said = [
            f"`{row['contrast']}` {row['difference']:+.3f} [{row['low']:.3f}, {row['high']:.3f}], **{row['verdict']}**"
            for row in own.to_dict("records")
        ]
        lines.append(f"Lag {lag}: {'; '.join(said)}.")
        apart += [f"{lag}"] if own["verdict"].isin(["higher", "lower"]).any() else []
    first = f"The default setting tells methods apart at these lags: {', '.join(apart) or 'none'}."
    return [first, *lines, *map(_fall, made["methods"].query("onset != '' and onset == onset").to_dict("records"))]


def _fall(row: Mapping[Any, Any]) -> str:
    """When the runs of a method at one lag failed, and whether they had lived to see that lag."""
    lag, (first, last) = row["lag_asked"], map(int, row["onset"].split(" to "))
    said = f"`{row['method']}` at requested lag {lag} fails in {row['failed']} runs, found down between updates"
    said += f" {first} and {last}"
    if last < lag:
        return f"{said}: no run reaches lag {lag}."
    return f"{said}. {row['rebound']} of them are no longer down at the end."


STUDY = Study("default-run", 7, tuple(grids()), 24, ("contrasts", "methods"), tables, answer)
