import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench.analysis.commands.gradients import Gradients
from vcpo_bench.analysis.diagnostics.gradients import (
    contribution_medians,
    contribution_table,
    gini,
    noise_to_signal,
    norm_table,
)
from vcpo_bench.analysis.results import load


def test_noise_to_signal_from_norms_equals_the_covariance():
    summands = np.random.default_rng(0).normal(0.3, 1, (32, 5))
    whole = summands.sum(axis=0)
    covariance = np.cov(summands, rowvar=False)
    direct = np.trace(covariance) / 32 / (summands.mean(axis=0) @ summands.mean(axis=0))
    found = noise_to_signal(float((summands**2).sum()), float(np.linalg.norm(whole)), 32)
    assert found == pytest.approx(direct)
    assert all(np.isnan(noise_to_signal(1.0, norm, 32)) for norm in (0.0, 1e-200, 1e300))
    assert noise_to_signal(4.0, 4.0, 4) == pytest.approx(0)  # four equal unit vectors: no noise


def test_gini_of_extremes():
    assert gini(np.ones(10)) == pytest.approx(0)
    assert gini(np.eye(10)[0]) == pytest.approx(0.9)
    assert np.isnan(gini(np.zeros(3)))
    values = np.random.default_rng(1).exponential(1, 200)
    pairwise = np.abs(values[:, None] - values).mean() / (2 * values.mean())
    assert gini(values) == pytest.approx(pairwise)


def test_norm_table(tmp_path, make_results):
    results = load(make_results(tmp_path, steps=80, record="diagnostics", sample_every=40))
    table = norm_table(results).set_index(["method", "staleness"])
    keys = results.cells.query("method == 'vcpo' and staleness == 16")["key"]
    steps = results.steps[results.steps["key"].isin(keys)]
    row = table.loc[("vcpo", 16)]
    assert row["lr"] == 3e-4
    assert row["norm"] == steps["grad_norm"].median()
    assert row["clipped"] == (steps["grad_norm"] > 1).mean()
    assert row["effective_rate"] == (steps["lr"] * steps["grad_norm_clipped"] / steps["grad_norm"]).median()
    assert row["head_share"] == pytest.approx(0.3)
    assert -1 < row["cosine"] < 1
    assert row["updates"] == 240


def test_contributions_are_per_update(tmp_path, make_results):
    folder = make_results(tmp_path, lags=(4,), seeds=(0,), steps=40, record="full", controls=False, sample_every=10)
    results = load(folder)
    table = contribution_table(results)
    assert len(table) == 2 * 4
    assert table["trajectories"].eq(128).all()
    assert table["largest_share"].between(1 / 128, 1).all()
    row = table.iloc[0]
    part = results.samples.query("key == @row.key and step == @row.step")
    share = part["coefficient_sum"].abs() / part["length"] * np.sqrt(part["score_norm_sq"])
    assert row["gini"] == pytest.approx(gini(share.to_numpy()))
    norm = results.steps.query("key == @row.key and step == @row.step")["grad_norm"].item()
    assert row["noise_to_signal"] == pytest.approx(noise_to_signal((share**2).sum(), norm, 128))


def test_medians_keep_a_cell_whose_settings_are_unknown(tmp_path, make_results):
    folder = make_results(tmp_path, lags=(4,), seeds=(0,), steps=20, record="full", controls=False, sample_every=10)
    results = load(folder)
    table = contribution_table(results)
    unknown = results.cells.assign(lr=[float("nan"), *results.cells["lr"][1:]])
    assert len(contribution_medians(table, unknown)) == len(contribution_medians(table, results.cells)) == 2


def test_thinned_trajectories_are_scaled_up(tmp_path, make_results):
    folder = make_results(tmp_path, lags=(4,), seeds=(0,), steps=40, record="full", controls=False, sample_every=10)
    results = load(folder)
    complete = contribution_table(results)["noise_to_signal"]
    for path in (folder / "cells").glob("*/samples.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.filter(table["prompt"].to_numpy() % 2 == 0), path)
    thinned = contribution_table(load(folder))["noise_to_signal"]
    assert thinned.median() == pytest.approx(complete.median(), rel=0.5)


def test_findings_say_what_is_missing(tmp_path, make_results):
    basic = Gradients().run(load(make_results(tmp_path / "a", seeds=(0,), steps=30)))
    assert set(basic.tables) == {"norms", "cells"}
    assert any("--record full" in one.text for one in basic.statements)
    folder = make_results(tmp_path / "b", lags=(4,), seeds=(0,), steps=40, record="full", controls=False)
    full = Gradients().run(load(folder))
    assert set(full.tables) == {"norms", "contributions", "contribution_medians"}
    assert any("largest trajectory" in one.text for one in full.statements)


def test_a_server_that_does_not_tell_whether_it_clips_gets_no_sentence_about_clipping(tmp_path, make_results):
    folder = make_results(tmp_path, steps=30)
    for path in (folder / "cells").glob("*/steps.parquet"):
        table = pq.read_table(path)
        unknown = pa.array([math.nan] * len(table))
        pq.write_table(
            table.set_column(table.column_names.index("grad_norm_clipped"), "grad_norm_clipped", unknown), path
        )
    said = [one.text for one in Gradients().run(load(folder)).statements]
    assert any("; whether they were clipped is not recorded." in text for text in said)
    assert any(text.startswith("Step scaling is strongest") and "effective" not in text for text in said)
    assert not any("clipping" in text or "nan" in text for text in said)
