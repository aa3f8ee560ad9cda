"""The measurements as CSV tables, from which a study's template makes its page: one table for each kind of row."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import ledger
import pandas as pd

WHERE = ("stage", "name", "gpu", "device", "tiny", "date", "commit")
"""Columns that every table begins with."""


def write(out: Path, folder: Path) -> list[Path]:
    """Write `measurements.csv`, one row each, and one for each list of rows, with the numbers beside it.

    `out` is what came home, `folder` such as `tables` of a study.
    """
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for facts in ledger.measurements(out):
        result = facts.get("result", {})
        where = {name: facts.get(name) for name in WHERE} | {"torch": facts.get("versions", {}).get("torch")}
        where |= {name: value for name, value in result.items() if isinstance(value, (str, int, float))}
        ending = {name: facts.get(name) for name in ("status", "error", "seconds")}
        tables["measurements"].append(where | ending)
        for name, rows in result.items():
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                tables[name] += [where | row for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv" for name in tables]
    for path, rows in zip(paths, tables.values(), strict=True):
        pd.DataFrame(rows).to_csv(path, index=False)
    return paths
