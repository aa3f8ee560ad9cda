"""What tables, threats and captions say where nothing arrived, nothing failed, or data was younger than asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.sentences import failures_by_lag
from vcpo_bench.analysis.comparison.coverage import _younger
from vcpo_bench.analysis.diagnosis import diagnose, read_run
from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.logs.find import LogFiles
from vcpo_bench.analysis.logs.read import _named
from vcpo_bench.analysis.logs.run import PART, LoggedRun
from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Document, Section, Table, TableCell
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.lag_axis import reward_against_lag
from vcpo_bench.reports.plots.update_time import _left_out
from vcpo_bench.reports.sections.cell_curves import _CURVES, _scale
from vcpo_bench.reports.sections.comparison_tables import _of_runs_that_arrive
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.diagnosis_page import _judged, diagnosis_page
from vcpo_bench.reports.writers.html import _without_shared


def test_no_ratio_is_shown_where_no_run_arrives() -> None:
    times = pd.DataFrame({"reached": [0, 2], "updates_ratio": [0.9, 1.1], "seconds_ratio_low": [0.8, 1.0]})
    shown = _of_runs_that_arrive(times)
    assert shown[["updates_ratio", "seconds_ratio_low"]].iloc[0].isna().all()
    assert shown.iloc[1].equals(times.iloc[1])


def test_a_handful_of_updates_left_out_is_not_told() -> None:
    quiet = pd.Series([True] * 999 + [False]).to_numpy()
    assert _left_out(quiet, []) == ""
    assert "vcpo cannot be shown" in _left_out(quiet, ["vcpo"])
    assert _left_out(~quiet, []).startswith("100% of the updates")


def test_methods_without_a_failure_are_told_at_once() -> None:
    rows = [(16, name, 3 if name == "tis" else 0, 3, 0) for name in ("a", "b", "c", "d", "tis")]
    table = pd.DataFrame(rows, columns=["staleness", "method", "collapsed", "runs", "stopped"])
    table = table.assign(rate=table["collapsed"] / table["runs"], low=float("nan"), high=float("nan"))
    cells = pd.DataFrame({"key": ["one"], "staleness": [16]})
    for shown, words in ((table, "all others 0 of 3; tis 3 of 3"), (table[:4], "every method 0 of 3")):
        found = Findings({"rates_by_lag": shown}, {"rates_by_lag": agreeing(cells, "staleness")})
        assert [one.text for one in failures_by_lag(found)] == [f"Lag 16, collapsed runs: {words}."]


def test_a_lag_that_little_of_the_data_had_is_a_threat() -> None:
    table = pd.DataFrame({"staleness": [1, 128], "trajectories": 100, "at_lag": [99, 36], "share": [0.99, 0.36]})
    cells = pd.DataFrame({"key": ["a", "b"], "staleness": [1, 128]})
    found = Findings({"realized": table}, {"realized": agreeing(cells, "staleness")})
    told = [one.text for one in _younger(found)]
    assert told == ["Lag 128: 36% of its data was that old; the rest was younger."]


def test_a_page_drops_the_settings_that_all_tables_share() -> None:
    rows = [[TableCell("walk"), TableCell(lag), TableCell("0.5")] for lag in ("1", "16")]
    table = Table("board", "Rewards.", ["task", "lag", "reward"], rows, settings=2)
    lean = _without_shared(Document("", [Section("a", "A", [table])], Ledger()))(table)
    assert isinstance(lean, Table)
    assert (lean.headings, lean.caption) == (["lag", "reward"], "Rewards. In all rows: task walk.")


def test_noise_of_a_kl_lies_on_the_lower_edge() -> None:
    kl = next(one for one in _CURVES if one.label == "KL")
    low, high = _scale(np.array([1e-14, 1e-13]), kl, None, 1e-5)
    assert (low, round(high, 9)) == (1e-5, 1e-4)


def test_crosses_mark_the_lags_at_which_runs_ended_as_nan(make_results: Callable[..., Path], tmp_path: Path) -> None:
    out = make_results(
        tmp_path, ("vcpo",), (1, 16), (0,), 40, shapes=lambda _, lag, __: "nan" if lag > 1 else "healthy"
    )
    plot = reward_against_lag(Study(load(out)), Sheet(), "chain", "fifo")
    assert plot is not None
    assert "A cross: a run there ended as nan" in plot.caption


def test_a_diagnosis_says_log_beside_the_axis(tmp_path: Path) -> None:
    lines = "".join(f"{step},{0.5},{10 ** (-step / 20)}\n" for step in range(60))
    (tmp_path / "log.csv").write_text("step,reward,kl\n" + lines)
    page = diagnosis_page(diagnose(read_run([str(tmp_path)], "auto", {"reward": "reward", "kl_reference": "kl"})))
    assert ">log</text>" in page
    assert "log axis" not in page


def test_of_a_folder_the_file_that_was_read_is_named() -> None:
    one = LogFiles("csv", "log", [Path("run/log.csv")])
    assert _named([one]) == "run/log.csv was"
    assert _named([one, one]) == "run/log.csv and 1 more were"


def test_the_parts_a_verdict_was_read_from_are_drawn() -> None:
    parts = cast("Any", {"accuracy": 1, "format": 2, "length": 3})
    run = LoggedRun("", "", "", "", "", {}, parts=parts)
    outcome = SimpleNamespace(column=PART, reason="Part of the reward (accuracy) fell.")
    found = SimpleNamespace(run=run, outcome=outcome, chain=[SimpleNamespace(sign="format up")])
    assert list(_judged(cast("Any", found))) == ["accuracy", "format"]
    outcome.column = "reward"
    assert _judged(cast("Any", found)) == {}
