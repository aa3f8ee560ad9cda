"""Scores by lm-eval: from their files through the summary over seeds into report, trace and export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.comparison.lm_eval_scores import lm_score_summary
from vcpo_bench.analysis.results import load
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections import lm_eval
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.trace import trace
from vcpo_bench.reports.writers.tables import export


def row(step: int, task: str, metric: str, value: float, higher: bool | None = True) -> dict[str, object]:
    measured = {"step": step, "task": task, "task_version": "1", "metric": metric, "filter": "none", "value": value}
    return measured | {"stderr": 0.01, "higher_is_better": higher, "n": 256, "shots": 0, "lm_eval": "0.4.13"}


@pytest.fixture(scope="module")
def scored(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three vcpo cells scored after 50 and 100 updates, one tis cell after 100, the others not at all."""
    folder = make_results(tmp_path_factory.mktemp("scored") / "run", lags=(1,), controls=False)
    (folder / records.SCORES_FOLDER).mkdir()
    for seed, key in enumerate(sorted(path.name for path in (folder / "cells").glob("*vcpo*"))):
        rows = [row(step, "vcpo-chain", "reward", 0.1 * seed + step / 200) for step in (50, 100)]
        pd.DataFrame([*rows, row(50, "wiki", "perplexity", 7.0, higher=False)]).to_parquet(
            folder / records.SCORES_FOLDER / f"{key}.parquet"
        )
    one = next((folder / "cells").glob("*tis*")).name
    pd.DataFrame([row(100, "vcpo-chain", "reward", 0.25, higher=None)]).to_parquet(
        folder / records.SCORES_FOLDER / f"{one}.parquet"
    )
    return folder


def test_the_latest_checkpoint_counts_over_seeds(scored: Path) -> None:
    summary = lm_score_summary(load(scored)).set_index(["lm_task", "method"])
    chain = summary.loc[("vcpo-chain", "vcpo")]
    assert (chain["step"], chain["seeds"], chain["documents"]) == (100, 3, 256)
    assert chain["value"] == pytest.approx(0.6)
    assert np.isnan(chain["value_low"]), "three seeds have no interval"
    assert summary.loc[("wiki", "vcpo"), "step"] == 50
    assert summary.loc[("vcpo-chain", "tis"), "seeds"] == 1
    assert np.isnan(summary.loc[("vcpo-chain", "tis"), "value_low"])


def test_the_report_shows_them_and_traces_them_to_their_rows(scored: Path) -> None:
    study = Study(load(scored))
    document = build(study)
    (section,) = [one for one in document.sections if one.anchor == "lm-eval"]
    (table,) = section.blocks
    shown = {(entries[3].text, entries[4].text): entries for entries in table.rows}
    assert shown["vcpo", "vcpo-chain"][9].text == "0.600"
    assert shown["vcpo", "wiki"][5].text == "perplexity (low)"
    assert shown["tis", "vcpo-chain"][5].text == "reward"
    found = trace(scored, shown["vcpo", "vcpo-chain"][9].number.id)
    assert set(found.rows["task"]) == {"vcpo-chain"}
    assert set(found.rows["step"]) == {100}
    assert found.rows["value"].mean() == pytest.approx(0.6)


def test_the_export_holds_them(scored: Path, tmp_path: Path) -> None:
    export(scored, tmp_path, "csv")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert len(scores) == 3 * 3 + 1
    assert {"key", *(column.name for column in records.LM_EVAL_SCORES)} == set(scores.columns)


def test_nothing_is_shown_where_nothing_was_scored(study: Study) -> None:
    assert study.results.lm_eval.empty
    assert lm_eval.blocks(study, Ledger()) == []


def test_a_damaged_file_is_a_problem_of_its_cell_only(scored: Path) -> None:
    path = next((scored / records.SCORES_FOLDER).glob("*tis*"))
    content = path.read_bytes()
    path.write_bytes(b"damaged")
    results = load(scored)
    assert len(results.lm_eval) == 9
    assert [str(problem).startswith(str(path)) for problem in results.problems] == [True]
    path.write_bytes(content)
