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
WAVES = {"600 to 607": range(600, 608), "608 to 615": range(608, 616)}
"""The second wave was registered after the page of the first was out."""


def grids() -> Iterator[GridSpec]:
    """The grid of the command, its controls included."""
    yield GridSpec(METHODS, LAGS, SEEDS, (TASK,), (RATE,), ("fifo",), settings=CellSettings(), controls=True)


def tables(runs: pd.DataFrame) -> Tables:
    """The contrasts of the three methods, what each method did, and the contrasts of each wave of seeds by itself."""
    return {"contrasts": contrasts(runs), "methods": methods(runs), "waves": waves(runs)}


def contrasts(runs: pd.DataFrame) -> pd.DataFrame:
    """Final reward of one method minus that of another, per lag, paired by seed; all of one family."""
    rows = []
    for lag, own in runs[runs["method"].isin(METHODS)].groupby("staleness", sort=True):
        rewards = {name: table.set_index("seed")["final_reward"] for name, table in own.groupby("method")}
        for one, other in combinations(METHODS, 2):
            facts = {"lag_asked": lag, "contrast": f"{one} - {other}"}
            rows.append(facts | contrast(rewards[one], rewards[other]))
    return judged(pd.DataFrame(rows), "higher", "lower")


def waves(runs: pd.DataFrame) -> pd.DataFrame:
    """`contrasts` of each wave of seeds, a family of its own; column `wave` says which."""
    parts = [contrasts(runs[runs["seed"].isin(list(seeds))]).assign(wave=name) for name, seeds in WAVES.items()]
    return pd.concat(parts, ignore_index=True)


def agreement(made: Tables) -> str:
    """In how many contrasts the second wave gives the verdict of the first, and that of all seeds."""
    place = ["lag_asked", "contrast"]
    first, second = (own.set_index(place)["verdict"] for _, own in made["waves"].groupby("wave", sort=True))
    whole = made["contrasts"].set_index(place)["verdict"]
    same = [int((second == other[second.index]).sum()) for other in (first, whole)]
    return (
        f"Seeds {list(WAVES)[1]}, which were registered after the page of the others was out, alone give the verdict "
        f"of those in {same[0]} of {len(second)} contrasts, and that of all seeds in {same[1]}."
    )


def methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Reward, failures, ESS and realized lag per method and lag; `reinforce` is the control.

    `found_first` and `found_last`: updates at which the first and the last failure was found; `rebound`: failed runs
    that are not down at the end.
    """
    rows = []
    for (lag, method), own in runs.groupby(["staleness", "method"], sort=True):
        row = {"lag_asked": lag, "method": method} | mean_row(own["final_reward"], "reward")
        row |= {"start": own["start_reward"].mean(), "failed": f"{int(own['failed'].sum())} of {len(own)}"}
        row |= {"found_first": own["onset"].min(), "found_last": own["onset"].max()}
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
    falls = made["methods"].dropna(subset=["found_first"]).to_dict("records")
    return [first, *lines, agreement(made), *map(_fall, falls)]


def _fall(row: Mapping[Any, Any]) -> str:
    """When the runs of a method at one lag failed, and whether they had lived to see that lag."""
    lag, last = row["lag_asked"], row["found_last"]
    said = f"`{row['method']}` at requested lag {lag} fails in {row['failed']} runs, found down between updates"
    said += f" {row['found_first']:.0f} and {last:.0f}"
    if last < lag:
        return f"{said}: no run reaches lag {lag}."
    return f"{said}. {row['rebound']} of them are no longer down at the end."


STUDY = Study("default-run", 7, tuple(grids()), 24, ("contrasts", "methods", "waves"), tables, answer)
