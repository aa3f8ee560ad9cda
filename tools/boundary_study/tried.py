"""Every place that was begun, also those that do not count, and how the runs ended."""

from __future__ import annotations

import pandas as pd

from .design import SEEDS, counts, pilot
from .tables import outcomes


def tried_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per place that was begun.

    Args:
        runs: Of `tables.Tables`.

    Returns:
        Columns `task`, `method`, `staleness`, `pilot_rates` (tried with 4 seeds each), `lr` of the main runs (NaN: none
        was found or run), `main` (how many ended), `failed` of these, and `counts`.
    """
    rows = []
    for place, ended in outcomes(runs).items():
        main = {rung: failed for (rung, seed), failed in ended.items() if seed in SEEDS}
        own = [failed for (_, seed), failed in ended.items() if seed in SEEDS]
        row = {"task": place.task, "method": place.method, "staleness": place.staleness}
        row |= {"pilot_rates": len(pilot(ended)), "lr": place.rate(next(iter(main))) if main else float("nan")}
        rows.append(row | {"main": len(own), "failed": sum(own), "counts": "yes" if counts(ended) else "no"})
    return pd.DataFrame(rows)


def fate_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the main runs of the places that count ended by the written rule.

    Args:
        runs: Main runs of those places.

    Returns:
        Columns `event`, `counts_as` (`failed`, `survived`, or `neither` where the rule leaves a run open) and `runs`.
    """
    side = runs["failed"].map({True: "failed", False: "survived"}).where(runs["known"].astype(bool), "neither")
    counted = runs.assign(counts_as=side).groupby(["counts_as", "event"]).size().rename("runs").reset_index()
    ordered = counted.sort_values(["counts_as", "runs"], ascending=[True, False])
    return ordered[["event", "counts_as", "runs"]].reset_index(drop=True)
