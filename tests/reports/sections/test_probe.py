"""The probe's table in a report: read beside the cells, drawn, and absent where nothing was probed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Table
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.probe import estimator_probe
from vcpo_bench.reports.sections import probe
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.trace import rows_behind

QUANTITIES = ("snr", "snr_along_ratio", "gain", "bias_sq", "cosine", "step_scale")


def probe_rows(key: str) -> pd.DataFrame:
    rows = []
    for step in (50, 150):
        for lag, methods in ((0, ("truth", "vcpo")), (16, ("vcpo", "clip"))):
            for method in methods:
                for place, quantity in enumerate(QUANTITIES):
                    value = 0.1 * (place + 1) + step / 1000 + (0.05 if method == "clip" else 0.0)
                    known = (method, quantity) != ("clip", "step_scale")
                    row = {"key": key, "method": method, "step": step, "lag": lag, "quantity": quantity}
                    row |= {"value": value if known else np.nan, "low": value - 0.02, "high": value + 0.02}
                    rows.append(row | {"preconditioned": True, "n": 64, "fresh": 256})
    return pd.DataFrame(rows)


@pytest.fixture
def probed(make_results: Callable[..., Path], tmp_path: Path) -> Study:
    folder = make_results(tmp_path / "study", methods=("vcpo",), lags=(16,), seeds=(0,), steps=60)
    key = next(path.name for path in (folder / records.CELLS).iterdir() if "-vcpo-" in path.name)
    (folder / records.PROBES_FOLDER).mkdir()
    probe_rows(key).to_parquet(folder / records.PROBES_FOLDER / f"{key}.parquet")
    return Study(load(folder))


def test_the_figure_shows_the_stale_updates(probed: Study) -> None:
    with drawing():
        plot = estimator_probe(probed, Sheet(legend=True))
    assert plot is not None
    assert plot.methods == ["vcpo", "clip"]
    line = next(one for one in plot.lines if one.name == "clip" and plot.panels[one.panel].startswith("signal"))
    np.testing.assert_allclose(line.y, [0.2, 0.3])


def test_the_table_has_every_row_and_gaps_stay_gaps(probed: Study) -> None:
    _, table = probe.blocks(probed, Ledger())
    assert isinstance(table, Table)
    rows = [[entry.text for entry in row] for row in table.rows]
    assert len(rows) == 2 * 4
    assert rows[3][:7] == ["chain", "vcpo", "3e-4", "0", "50", "16", "clip"]
    assert rows[3][7] == "0.200 [0.180, 0.220]"
    assert not rows[3][-1].startswith("0")


def test_every_number_traces_to_its_row(probed: Study) -> None:
    ledger = Ledger()
    _, table = probe.blocks(probed, ledger)
    assert isinstance(table, Table)
    assert len(ledger.numbers) == 2 * 4 * len(QUANTITIES)
    for number in ledger.numbers.values():
        (row,) = rows_behind(probed, number).to_dict("records")
        np.testing.assert_equal(row["value"], number.value)
        assert f"step {row['step']}, lag {row['lag']}, method {row['method']}" in number.about
        assert number.what == f"probe.{row['quantity']}"


def test_a_damaged_file_is_a_problem_not_a_crash(probed: Study) -> None:
    folder = probed.results.folders[0]
    (folder / records.PROBES_FOLDER / "broken.parquet").write_bytes(b"no parquet")
    results = load(folder)
    assert len(results.probes) == 2 * 4 * len(QUANTITIES)
    assert any("broken.parquet" in problem.file for problem in results.problems)


def test_nothing_probed_nothing_said(study: Study) -> None:
    assert probe.blocks(study, Ledger()) == []
    assert estimator_probe(study, Sheet()) is None
