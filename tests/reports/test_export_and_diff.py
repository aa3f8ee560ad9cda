"""Tables for other programs, two folders side by side, pooling, and a page that follows a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from vcpo_bench.errors import UsageError
from vcpo_bench.records import RULES_VERSION
from vcpo_bench.reports.diff import diff, write_diff
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.tables import export


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_exported_tables_hold_what_was_recorded(folder: Path, study: Study, tmp_path: Path, form: str) -> None:
    written = {path.stem: path for path in export(folder, tmp_path / "out", form)}
    read = pd.read_csv if form == "csv" else pd.read_parquet
    assert {"cells", "scoreboard", "steps", "evals", "lags", "compare-ranking"} <= set(written)
    steps = read(written["steps"])
    assert steps["ess_ratio"].tolist() == study.results.steps["ess_ratio"].tolist()
    assert read(written["cells"])["key"].tolist() == study.cells["key"].tolist()


def test_latex_export_and_unknown_forms(folder: Path, tmp_path: Path) -> None:
    names = {path.name for path in export(folder, tmp_path, "latex")}
    assert {"macros.tex", "table-scoreboard.tex", "table-ranking.tex"} <= names
    with pytest.raises(UsageError, match="'xlsx': choose one of csv, parquet, latex"):
        export(folder, tmp_path, "xlsx")


def test_diff_of_a_folder_with_itself_says_nothing_changed(folder: Path) -> None:
    text = diff(folder, folder).text
    assert f"{len(open_study(folder).cells)} have the same key" in text
    assert "Of these, 0 end at a different reward." in text
    assert "No conclusion differs" in text
    assert "nothing" in text


def test_diff_names_what_changed_and_what_flips(make_results: Callable[..., Path], tmp_path: Path) -> None:
    one = make_results(tmp_path / "one", methods=("vcpo", "tis"), lags=(16,), seeds=range(6), steps=60, controls=False)
    two = make_results(
        tmp_path / "two",
        methods=("vcpo", "tis"),
        lags=(16,),
        seeds=range(6),
        steps=60,
        controls=False,
        shapes={"vcpo": "healthy", "tis": "healthy"},
    )
    cell = next((two / "cells").glob("*vcpo*")) / "cell.json"
    facts = json.loads(cell.read_text())
    facts["provenance"] |= {"python": "3.12.0 <new>", "libraries": {"torch": "2.12.0", "numpy": "2.4.6"}}
    cell.write_text(json.dumps(facts))
    text = diff(one, two).text
    assert "provenance: python" in text
    assert "numpy 2.4.6, torch 2.12.0" in text
    assert "tis against vcpo" in text
    page = write_diff(one, two, tmp_path / "diff.html").read_text()
    assert "3.12.0 &lt;new&gt;" in page
    assert "Conclusions that differ" in page


def test_pooling_refuses_mixed_rules(folder: Path, make_results: Callable[..., Path], tmp_path: Path) -> None:
    old = make_results(tmp_path / "old", methods=("vcpo",), lags=(1,), seeds=(0,), steps=30, rules_version="0.9")
    said = f"rules versions 0.9 ({old}) and {RULES_VERSION} ({folder}), which cannot be compared"
    with pytest.raises(UsageError, match=re.escape(said)):
        open_study([folder, old])
    other = make_results(tmp_path / "other", methods=("vespo",), lags=(1,), seeds=(0,), steps=30)
    assert set(open_study([folder, other]).methods) == {"vcpo", "clip", "vespo", "reinforce"}
