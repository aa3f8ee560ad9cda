"""The tables of the estimator probe on a terminal, from the file it wrote; no torch needed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.records import PROBES

_HEADINGS = {
    "snr": "signal/noise",
    "snr_along": "along the truth",
    "snr_along_ratio": "ratio to first",
    "cosine": "cosine",
    "cosine_of_mean": "cosine of mean",
    "cosine_back": "back to mu",
    "gain": "gain",
    "bias_sq": "bias²",
    "step_scale": "step scale",
}
"""Columns of the printed tables; the file holds more."""


def read_probe(path: Path) -> pd.DataFrame:
    """The rows of `records.PROBES` in a Parquet or CSV file.

    Raises:
        DamagedResultError: The file is not such a table.
    """
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DamagedResultError(f"{path} cannot be read ({type(error).__name__}); probe the cell again") from error
    missing = [column.name for column in PROBES if column.name not in frame]
    if missing:
        raise DamagedResultError(f"{path} lacks the column {missing[0]!r}; probe the cell again")
    return frame


def probe_tables(path: Path) -> RenderableType:
    """One table per checkpoint and optimizer space: a row per method, each value over its 95% interval."""
    frame = read_probe(path)
    parts: list[RenderableType] = []
    for (step, preconditioned), rows in frame.groupby(["step", "preconditioned"], sort=True):
        space = "after the optimizer's preconditioning" if preconditioned else "before preconditioning"
        counts = f"{rows['n'].iloc[-1]} stale and {rows['fresh'].iloc[0]} fresh batches"
        parts += [Text(f"after {step} updates, {space} ({counts})", style="bold"), _table(rows)]
    return Group(*parts)


def _table(rows: pd.DataFrame) -> Table:
    shown = {name: heading for name, heading in _HEADINGS.items() if (rows["quantity"] == name).any()}
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("method", max_width=24, overflow="fold")
    for heading in shown.values():
        table.add_column(heading, justify="right")
    for (lag, method), values in rows.groupby(["lag", "method"], sort=False):
        by_name = {str(row["quantity"]): row for _, row in values.iterrows()}
        cells = [_cell(by_name[name]) if name in by_name else "" for name in shown]
        table.add_row(str(lag), str(method), *cells)
    return table


def _cell(row: pd.Series[float]) -> str:
    if pd.isna(row["value"]):
        return "-"
    if row["low"] == row["value"] == row["high"]:
        return f"{row['value']:.3g}"
    return f"{row['value']:.3g}\n{row['low']:.3g}..{row['high']:.3g}"
