"""What a set of cells covers, and the threats to validity that can be read off it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from vcpo_bench.analysis.comparison.scoreboard import cell_summary
from vcpo_bench.analysis.findings import Finding, Findings, agreeing, own_key
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.wording import counted, learning_rate, listed, percent, row_by_row

EXTENT = "extent"
"""Topic: what was run."""
UNFINISHED = "unfinished"
"""Topic: runs that are still going on."""
COMPLETE = "complete"
"""Topic: all cells completed."""
THREAT = "threat"
"""Topic: what threatens the validity of conclusions."""

_MOST_AT_LAG = 0.75
"""Share of the data at the lag that was asked for, below which a reader must know."""
_SETTING = ["task", "regime", "lr", "staleness", "method"]


def coverage(results: Results) -> Findings:
    """What the cells say about the study as a whole.

    Tables: `cells` (`analysis.comparison.scoreboard.cell_summary`), and `realized`: per `staleness`, how many
    `trajectories` were consumed, how many of them `at_lag`, and their `share`.
    """
    cells = cell_summary(results).drop(columns=["provenance", "path"])
    tables = {"cells": cells, "realized": _realized(results)}
    found = Findings(tables, {"cells": own_key, "realized": agreeing(cells, "staleness")})
    found.statements += [_extent(found), *_progress(found)]
    found.statements += [
        *_seeds(found),
        *_one_of_a_kind(found),
        *_unequal_runs(found),
        *_younger(found),
        _optimism(found),
    ]
    return found


def _about(found: Findings, topic: str, text: str, cells: pd.DataFrame, *columns: str) -> Finding:
    return found.finding(topic, text, "cells", cells, ("key", *columns))


def _extent(found: Findings) -> Finding:
    cells = found.tables["cells"]
    lags = sorted(cells["staleness"].unique())
    rates = [learning_rate(lr) for lr in sorted(cells["lr"].unique())]
    text = (
        f"{counted(len(cells), 'training run')}: {counted(cells['method'].nunique(), 'method')} on "
        f"{listed(sorted(map(str, cells['task'].unique())))}, {_several('lag', list(map(str, lags)))}, "
        f"{_several('learning rate', rates)}, {counted(cells['seed'].nunique(), 'seed')}."
    )
    return _about(found, EXTENT, text, cells, *_SETTING, "seed")


def _several(noun: str, values: list[str]) -> str:
    return f"{noun}{'s' if len(values) > 1 else ''} {listed(values)}"


def _progress(found: Findings) -> Iterator[Finding]:
    cells = found.tables["cells"]
    partial = int(cells["partial"].sum())
    if partial:
        text = f"Preliminary: {partial} of {counted(len(cells), 'run')} not finished; each is shown as far as it got."
        yield _about(found, UNFINISHED, text, cells, "status", "partial")
    if cells["status"].eq("completed").all():
        yield _about(found, COMPLETE, f"All {counted(len(cells), 'cell')} completed.", cells, "status")


def _seeds(found: Findings) -> Iterator[Finding]:
    cells = found.tables["cells"]
    seeds = cells.groupby(_SETTING)["seed"].transform("nunique")
    fewest, most = int(seeds.min()), int(seeds.max())
    if fewest < ENOUGH:
        text = (
            f"Few seeds: some comparisons rest on {counted(fewest, 'seed')}; intervals and tests are shown from "
            f"{ENOUGH} runs on."
        )
        yield _about(found, THREAT, text, cells[seeds == fewest], *_SETTING, "seed")
    if fewest < most:
        text = f"Unequal budgets: between {fewest} and {most} seeds per method and setting."
        yield _about(found, THREAT, text, cells, *_SETTING, "seed")


def _one_of_a_kind(found: Findings) -> Iterator[Finding]:
    cells = found.tables["cells"]
    if cells["lr"].nunique() == 1:
        text = (
            "One learning rate: it ranks methods partly by which of them happens to be near its limit; a method that "
            "takes smaller steps may only look more stable."
        )
        yield _about(found, THREAT, text, cells, "lr")
    if cells["task"].nunique() == 1:
        text = f"One task ({cells['task'].iloc[0]}): nothing here shows that the ranking holds on other tasks."
        yield _about(found, THREAT, text, cells, "task")
    if not cells["control"].any():
        text = "No controls: whether the lag harms training without any correction was not measured."
        yield _about(found, THREAT, text, cells, "control")


def _unequal_runs(found: Findings) -> Iterator[Finding]:
    cells = found.tables["cells"]
    lengths = sorted(cells["steps"].unique())
    if len(lengths) > 1:
        text = (
            f"Runs of different planned length ({listed(list(map(str, lengths)))} updates) are each compared at their "
            "own end."
        )
        yield _about(found, THREAT, text, cells, "steps")
    broken = cells[cells["status"] == "error"]
    if len(broken):
        verb = "is" if len(broken) == 1 else "are"
        text = f"{counted(len(broken), 'cell')} ended in an error and {verb} missing from every comparison."
        yield _about(found, THREAT, text, broken, "status", "error")


def _realized(results: Results) -> pd.DataFrame:
    lags = results.lags.merge(results.cells[["key", "staleness"]], on="key")
    at_lag = lags["trajectories"].where(lags["lag"] >= lags["staleness"], 0)
    table = lags.assign(at_lag=at_lag).groupby("staleness")[["trajectories", "at_lag"]].sum().reset_index()
    return table.assign(share=table["at_lag"] / table["trajectories"])


def _younger(found: Findings) -> Iterator[Finding]:
    """Lags that less than `_MOST_AT_LAG` of the data had."""
    table = found.tables["realized"]
    for part, row in row_by_row(table[table["share"] < _MOST_AT_LAG]):
        text = f"Lag {row['staleness']}: {percent(row['share'])} of its data was that old; the rest was younger."
        yield found.finding(THREAT, text, "realized", part, ("staleness", "trajectories", "at_lag", "share"))


def _optimism(found: Findings) -> Finding:
    text = "The best evaluation is the maximum of noisy values and therefore optimistic; compare final rewards."
    return _about(found, THREAT, text, found.tables["cells"], "best_reward", "final_reward")
