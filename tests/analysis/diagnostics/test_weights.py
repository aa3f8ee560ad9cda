import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vcpo_bench.analysis.commands.weights import Weights
from vcpo_bench.analysis.diagnostics.correlations import correlations
from vcpo_bench.analysis.diagnostics.ess import expected_ess
from vcpo_bench.analysis.diagnostics.trajectory_weights import lag_bucket, prepared, sample_tables, tails
from vcpo_bench.analysis.diagnostics.weight_sentences import tail_indices
from vcpo_bench.analysis.diagnostics.weights import ess_pairs, ess_table, kl_explained_table, kl_table
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.results import load


@pytest.fixture
def full(tmp_path, make_results):
    folder = make_results(tmp_path, lags=(2, 16), seeds=(0, 1), steps=60, record="full", controls=False, sample_every=5)
    return load(folder)


def test_ess_table_medians_and_bias(tmp_path, make_results):
    results = load(make_results(tmp_path, steps=100))
    table = ess_table(results).set_index(["method", "staleness"])
    keys = results.cells.query("method == 'vcpo' and staleness == 16")["key"]
    expected = results.steps[results.steps["key"].isin(keys)]["ess_ratio"].median()
    assert table.loc[("vcpo", 16), "ess"] == expected
    assert table.loc[("vcpo", 16), "updates"] == 300
    assert (table["ess_used"] > table["ess"]).all()
    assert (table["finite_batch"] >= table["limit"] - 0.005).all()
    assert table.loc[("tis", 16), "starved"] > table.loc[("tis", 1), "starved"] == 0
    assert table["token_ess"].isna().all()


def test_second_moment_is_variance_plus_squared_mean(tmp_path, make_results):
    results = load(make_results(tmp_path, methods=("vcpo",), lags=(4,), seeds=(0,), steps=40, controls=False))
    steps = results.steps
    mean = -steps["length_mean"] * steps["kl_mu_theta_k1"]
    assert ess_table(results)["second_moment"].item() == pytest.approx((steps["log_weight_var"] + mean**2).median())


def test_kl_times_length_explains_ess_that_is_made_of_it(tmp_path, make_results):
    results = load(make_results(tmp_path, lags=(1, 16, 64), steps=200))
    cells, value, low, high = kl_explained_table(results).iloc[0]
    assert cells == len(results.cells)
    assert value > 0.9
    assert low <= value <= high
    table = kl_table(results).set_index(["method", "staleness"])
    steps = results.steps[results.steps["key"].str.contains("-tis-fifo64-") & (results.steps["step"] > 0)]
    variance = 2 * steps["length_mean"] * steps["kl_mu_theta_k3"]
    assert table.loc[("tis", 64), "predicted"] == pytest.approx(np.exp(-variance).median())
    assert table.loc[("tis", 64), "predicted_batch"] == pytest.approx(np.median(expected_ess(variance, 128)))
    assert table.loc[("tis", 64), "rank_correlation"] > 0.7
    assert table["explained"].dropna().between(0, 1).all()


def test_kl_does_not_explain_an_ess_of_its_own(tmp_path, make_results):
    results = load(make_results(tmp_path, lags=(1, 16), steps=200))
    noise = np.random.default_rng(0).uniform(0.05, 1, len(results.steps))
    results.__dict__["steps"] = results.steps.assign(ess_ratio=noise)
    assert kl_explained_table(results)["explained"].item() < 0.05
    assert kl_table(results)["rank_correlation"].abs().max() < 0.2


def test_what_kl_explains_does_not_depend_on_how_much_the_ess_varies(tmp_path, make_results):
    results = load(make_results(tmp_path, lags=(16,), steps=20))
    varying = kl_explained_table(results)["explained"].item()
    results.__dict__["steps"] = results.steps.assign(ess_ratio=results.steps["ess_ratio"] ** 1e-6)
    assert kl_explained_table(results)["explained"].item() == pytest.approx(varying, rel=1e-6)


def test_correlations_of_cells_are_those_of_scipy_and_equal_values_share_ranks():
    random = np.random.default_rng(0)
    lengths = [6, 40, 2, 40, 6, 7, 1]
    x, y = np.round(random.normal(size=(2, sum(lengths))), 1)
    begins = np.cumsum([0, *lengths[:-1]])
    x[begins[4] : begins[5]] = 3.0
    found = correlations(x, y, begins)
    for cell in (0, 1, 3, 5):
        rows = slice(begins[cell], begins[cell] + lengths[cell])
        assert found[cell, 0] == pytest.approx(stats.spearmanr(x[rows], y[rows]).statistic, abs=1e-12)
        assert found[cell, 1] == pytest.approx(stats.pearsonr(x[rows], y[rows]).statistic ** 2, abs=1e-12)
    assert np.isnan(found[[2, 4, 6]]).all()  # two updates, a constant series, one update
    assert len(np.unique(x[:6])) < 6 or len(np.unique(x[6:46])) < 40


def test_pairs_that_are_known_give_the_same_tables(tmp_path, make_results):
    results = load(make_results(tmp_path, steps=60))
    pairs = ess_pairs(results)
    pd.testing.assert_frame_equal(kl_table(results, pairs), kl_table(results))
    pd.testing.assert_frame_equal(kl_explained_table(results, pairs=pairs), kl_explained_table(results))


def test_lag_buckets():
    assert lag_bucket(np.array([0, 1, 2, 3, 4, 7, 8, 63, 64, -1])).tolist() == [0, 1, 2, 2, 4, 4, 8, 32, 64, 0]


def test_ess_by_lag_separates_the_fill_from_the_steady_state(full):
    table = sample_tables(full)["by_lag"]
    vcpo = table[(table["method"] == "vcpo") & (table["staleness"] == 16)]
    assert vcpo["bucket"].tolist() == [0, 4, 8, 16]  # updates 0, 5, 10 and 15, then the full lag
    assert vcpo["trajectories"].sum() == 2 * 12 * 128
    assert (table["max_weight"] <= table["kish"]).all()


def test_advantage_is_the_common_one(full):
    samples = prepared(next(full.samples_by_cell())[1])
    group = samples.groupby(["step", "batch", "prompt"])
    assert group["advantage"].mean().abs().max() < 1e-12
    mixed = group["reward"].std() > 0
    assert group["advantage"].std(ddof=0)[mixed].to_numpy() == pytest.approx(1)
    assert (group["advantage"].std(ddof=0)[~mixed] == 0).all()


def test_per_update_statistics_against_plain_loops(full):
    table = sample_tables(full)["per_update"]
    row = table[(table["method"] == "tis") & (table["staleness"] == 16) & (table["step"] == 20)].iloc[0]
    part = prepared(dict(full.samples_by_cell())[row["key"]]).query("step == @row.step")
    w = np.exp(part["log_weight"].to_numpy())
    contribution = w * part["advantage"].abs().to_numpy() * np.sqrt(part["score_norm_sq"].to_numpy())
    assert w.max() > 8
    assert row["kish"] == pytest.approx(w.sum() ** 2 / (128 * (w**2).sum()))
    assert row["gradient_ess"] == pytest.approx(contribution.sum() ** 2 / (128 * (contribution**2).sum()))
    assert row["tis_1"] == pytest.approx(np.mean([abs(min(one, 8) - 1) for one in w]))
    assert row["second_moment"] == pytest.approx(np.mean(np.log(w) ** 2))
    assert row["token_second_moment"] == pytest.approx(np.mean((np.log(w) / 12) ** 2), rel=1e-3)
    assert row["token_tis_1"] == pytest.approx(np.mean(np.abs(np.minimum(w ** (1 / 12), 2) - 1)), rel=1e-3)
    assert row["gradient_ess"] <= 1
    assert 0 < row["gradient_ess_applied"] <= 1


def test_without_score_norms_only_the_weights_are_judged(tmp_path, make_results):
    folder = make_results(
        tmp_path, lags=(4,), seeds=(0,), steps=40, record="diagnostics", controls=False, sample_every=5
    )
    results = load(folder)
    tables = sample_tables(results)
    assert tables["per_update"]["gradient_ess"].isna().all()
    assert tables["per_update"]["token_tis_1"].isna().all()
    assert tables["tails"]["quantity"].unique().tolist() == ["weight"]


def test_tail_windows_pool_the_trailing_updates(full):
    table = tails(prepared(next(full.samples_by_cell())[1]), windows=2, replications=20)
    assert set(table["quantity"]) == {"weight", "weight x |A| x norm"}
    assert table["n"].eq(4 * 128).all()  # 20 updates of which every fifth is recorded
    known = table.dropna(subset="k")
    assert (known["low"] <= known["high"]).all()
    assert len(known)


def test_tail_sentences_count_the_sure_cases():
    row = {"quantity": "weight", "n": 640, "limit": 0.64, "reason": ""}
    table = pd.DataFrame([row | {"k": k, "low": k - 0.1, "high": k + 0.1} for k in (0.2, 0.6, 0.9)])
    table = table.assign(key="a", step=range(3))
    (said,) = tail_indices(Findings({"tails": table}, {"tails": own_key}))
    assert "above what so many weights allow in 1, below it in 1, and includes it in 1" in said.text
    nothing = table.assign(k=np.nan, reason="constant tail")
    (said,) = tail_indices(Findings({"tails": nothing}, {"tails": own_key}))
    assert "not defined in any window (constant tail)" in said.text


def test_findings_in_plain_words(full, tmp_path, make_results):
    findings = Weights().run(full)
    assert set(findings.tables) == {"ess", "kl", "kl_explained", "per_update", "by_lag", "tails"}
    assert any("Lag 16" in one.text for one in findings.statements)
    assert any("KL times length explains" in one.text for one in findings.statements)
    basic = Weights().run(load(make_results(tmp_path / "basic", seeds=(0,), steps=30)))
    assert set(basic.tables) == {"ess", "kl", "kl_explained", "cells"}
    assert any("--record diagnostics" in one.text for one in basic.statements)
