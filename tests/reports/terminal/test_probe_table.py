"""The tables of a probe, as a terminal shows them."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.records import PROBES
from vcpo_bench.reports.terminal.probe_table import probe_tables, read_probe

SHOWN = ("snr", "snr_along", "snr_along_ratio", "cosine", "cosine_of_mean", "cosine_back", "gain", "bias_sq")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = []
    for preconditioned in (False, True):
        for method, value in (("tis", 0.125), ("vcpo(baseline=group)", float("nan"))):
            for quantity in SHOWN:
                row = {column.name: 0 for column in PROBES}
                row |= {"key": "cell", "step": 50, "lag": 16, "n": 64, "fresh": 256}
                row |= {"method": method, "quantity": quantity, "preconditioned": preconditioned}
                rows.append(row | {"value": value, "low": value - 0.0625, "high": value + 0.0625})
    path = tmp_path / "cell.parquet"
    pd.DataFrame(rows).to_parquet(path)
    return path


def test_each_space_has_a_table_with_intervals_that_fits_80_columns(table: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(probe_tables(table))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "after 50 updates, not preconditioned (64 stale and 256 fresh batches)"
    assert "after 50 updates, preconditioned by AdamW (64 stale and 256 fresh batches)" in lines
    values = [line.split() for line in lines if line.startswith(" 16 ")]
    assert sum(line[2:].count("0.125") for line in values if line[1] == "tis") == 2 * len(SHOWN)
    assert sum(line[2:].count("-") for line in values if line[1] == "vcpo(baseline=group)") == 2 * len(SHOWN)
    assert sum(line.count("0.0625..0.188") for line in lines) == 2 * len(SHOWN), "no interval is cut"


def test_a_table_without_a_column_is_damaged(table: Path) -> None:
    pd.read_parquet(table).drop(columns="value").to_csv(table.with_suffix(".csv"))
    with pytest.raises(DamagedResultError, match="lacks the column 'value'"):
        read_probe(table.with_suffix(".csv"))
    table.write_bytes(b"no table")
    with pytest.raises(DamagedResultError, match="cannot be read"):
        read_probe(table)
