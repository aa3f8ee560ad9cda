"""The results of `vcpo-bench lab probe` as tables for a terminal, read from the file it wrote."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.records import PROBES

_THEMES = (
    {"snr": "SNR", "snr_along": "SNR along truth", "snr_along_ratio": "ratio to first"},
    {"cosine": "cosine", "cosine_of_mean": "cosine of mean", "cosine_back": "cosine to mu"},
    {"gain": "gain", "bias_sq": "bias²", "step_scale": "step scale"},
)
"""Quantities with their headings, a table each: as many columns as fit 80 characters. The file holds more."""

LEGEND = (
    "truth: gradient of the expected reward, estimated from the fresh batches\n"
    "ratio: of the SNR along the truth to that of the first method\n"
    "cosine to mu: above 0, the update leads back to the behavior policy mu"
)


def read_probe(path: Path) -> pd.DataFrame:
    """Read a probe table, with the columns `records.PROBES`.

    Args:
        path: Parquet or CSV file that `vcpo-bench lab probe` wrote.

    Raises:
        DamagedResultError: The file cannot be read or lacks a column.
    """
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DamagedResultError(
            f"{path} cannot be read ({type(error).__name__}); run vcpo-bench lab probe again"
        ) from error
    missing = [column.name for column in PROBES if column.name not in frame]
    if missing:
        raise DamagedResultError(f"{path} lacks the column {missing[0]!r}; run vcpo-bench lab probe again")
    return frame


def probe_tables(path: Path) -> RenderableType:
    """The tables of each checkpoint, with and without preconditioning: a row per method, each value over its interval.

    Raises:
        DamagedResultError: The file cannot be read or lacks a column.
    """
    frame = read_probe(path)
    parts: list[RenderableType] = []
    for (step, preconditioned), rows in frame.groupby(["step", "preconditioned"], sort=True):
        space = "preconditioned by AdamW" if preconditioned else "not preconditioned"
        counts = f"{rows['n'].iloc[-1]} stale and {rows['fresh'].iloc[0]} fresh batches"
        parts.append(Text(f"after {step} updates, {space} ({counts})", style="bold"))
        parts += [_table(rows, theme) for theme in _THEMES if rows["quantity"].isin(list(theme)).any()]
    return Group(*parts, Text(LEGEND, style="dim"))


def _table(rows: pd.DataFrame, theme: dict[str, str]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("method", min_width=10, max_width=24, overflow="fold")
    for heading in theme.values():
        table.add_column(heading, justify="right", min_width=12, no_wrap=True)
    for (lag, method), values in rows.groupby(["lag", "method"], sort=False):
        by_name = {str(row["quantity"]): row for _, row in values.iterrows()}
        table.add_row(str(lag), str(method), *[_cell(by_name[name]) if name in by_name else "" for name in theme])
    return table


def _cell(row: pd.Series[float]) -> str:
    if pd.isna(row["value"]):
        return "-"
    if row["low"] == row["value"] == row["high"]:
        return f"{row['value']:.3g}"
    return f"{row['value']:.3g}\n{row['low']:.3g}..{row['high']:.3g}"
