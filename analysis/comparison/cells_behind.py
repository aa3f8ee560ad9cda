"""From the rows of the tables of `compare` to the cells they were computed from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.comparison.ablation import BEST_RATE, find_families, methods_of, step_control
from vcpo_bench.analysis.findings import CellsBehind, agreeing, of_methods, own_key
from vcpo_bench.analysis.wording import learning_rate

_Groups = Iterable[tuple[Any, pd.DataFrame]]


def cells_behind(cells: pd.DataFrame, runs: pd.DataFrame) -> dict[str, CellsBehind]:
    """For each table, how to get from its rows to cells.

    Args:
        cells: All cells, with `key`: table `scores`.
        runs: Those at best learning rates: table `tuned`.
    """
    lagged = cells[cells["staleness"] > 0]
    decided = lagged[~lagged["event"].isin(UNDECIDED)]
    return {
        "anchors": agreeing(cells, "task"),
        "scores": own_key,
        "tuned": own_key,
        "choices": agreeing(lagged, "task", "regime", "staleness", "method"),
        "budget": agreeing(lagged, "task", "regime", "staleness"),
        "ranking": agreeing(runs, "staleness", "method"),
        "by_task": agreeing(runs, "task", "staleness", "method"),
        "answers": of_methods(runs, ("method", "runner_up"), "staleness"),
        "pairs": of_methods(runs, ("first", "second"), "staleness"),
        "improvement": of_methods(runs, ("first", "second"), "staleness"),
        "profiles": agreeing(runs, "method"),
        "targets": agreeing(runs, "staleness", "method"),
        "speedup": agreeing(runs, "task", "staleness", "method"),
        "non_inferiority": agreeing(runs, "task", "staleness", "method"),
        "stable_rates": agreeing(decided, "task", "regime", "method", "staleness"),
        "frontier": _of_frontier(decided),
        "ablation": _of_ablation(lagged, runs),
        "step_controls": _of_step_controls(cells),
        "cost": of_methods(cells, ("method", "base"), "task"),
    }


def _of_frontier(cells: pd.DataFrame) -> CellsBehind:
    """One method, or all of them."""
    one = agreeing(cells, "method")
    return lambda rows: cells["key"] if rows["method"].eq("(all)").any() else one(rows)


def _of_ablation(cells: pd.DataFrame, runs: pd.DataFrame) -> CellsBehind:
    """The methods that an effect contrasts, at their best learning rates or at one."""
    families = find_families([*runs["method"], *cells["method"]])
    places = {(BEST_RATE, lag): here for lag, here in cast("_Groups", runs.groupby("staleness"))}
    by_rate = cast("_Groups", cells.groupby(["lr", "staleness"]))
    places |= {(learning_rate(lr), lag): here for (lr, lag), here in by_rate}

    def behind(rows: pd.DataFrame) -> Iterable[str]:
        keys: list[str] = []
        for row in rows.to_dict("records"):
            here = places.get((row["at"], row["staleness"]))
            if here is not None:
                keys += here.loc[
                    here["method"].isin(methods_of(families, row["family"], row["effect"])), "key"
                ].tolist()
        return keys

    return behind


def _of_step_controls(cells: pd.DataFrame) -> CellsBehind:
    """A method, and the controls that take its step sizes in that way."""
    roles = {method: step_control(str(method)) for method in cells["method"].unique()}

    def behind(rows: pd.DataFrame) -> Iterable[str]:
        keys: list[str] = []
        for row in rows.to_dict("records"):
            controls = [method for method, role in roles.items() if role == (row["control"], row["method"])]
            named = cells["method"].isin([row["method"], *controls])
            keys += cells.loc[named & (cells["staleness"] == row["staleness"]), "key"].tolist()
        return keys

    return behind
