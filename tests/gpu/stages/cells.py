"""Cells of language models that share the device, as a table."""

from __future__ import annotations

from pathlib import Path

from kit import Result
from verbs import ended_cells


def cell_table(results: Path) -> Result:
    """Final reward and ESS of every cell that has ended, and the engine mismatch: ESS at lag 0.

    Seconds are those of cells that share the device with others.
    """
    from vcpo_bench.analysis.results import load

    if not ended_cells(results):
        return {"ended": 0}
    found = load(results)
    rows = []
    for key, steps in found.steps.groupby("key", sort=False):
        cell = found.cells.set_index("key").loc[key]
        evals = found.evals[found.evals["key"] == key]
        rows.append(
            {
                "method": cell["method"],
                "staleness": int(cell["staleness"]),
                "lag_realized": float(steps["lag_mean"].iloc[-1]),
                "seed": int(cell["seed"]),
                "status": cell["status"],
                "start_reward": float(evals["sampled_reward"].iloc[0]),
                "final_reward": float(evals["sampled_reward"].iloc[-1]),
                "ess_ratio_median": float(steps["ess_ratio"].median()),
                "seconds_shared": float(cell["seconds"]) / len(steps),
            }
        )
    at_zero = [row["ess_ratio_median"] for row in rows if row["staleness"] == 0]
    return {"ended": len(rows), "cells": rows, "ess_at_lag_0": min(at_zero, default=float("nan"))}
