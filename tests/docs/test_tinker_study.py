"""Every number of the study of Tinker follows from the tables that ship with it, which `vcpo-bench export` wrote."""

import re
from pathlib import Path

import pandas as pd
import pytest

from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.records.diagnostic import GradientDiagnostic
from vcpo_bench.records.steps import DIAGNOSTICS

STUDY = Path(__file__).parents[2] / "docs" / "studies" / "tinker"
PAGE = (STUDY / "README.md").read_text()
TEXT = " ".join(PAGE.split())
METHODS = ["vcpo(baseline=group)", "clip", "vespo"]
LAGS = [0, 4]


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return pd.read_csv(STUDY / "cells.csv").set_index("key")


@pytest.fixture(scope="module")
def steps(cells: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(STUDY / "steps.csv.gz").join(cells[["method", "staleness", "seed"]], on="key")


def test_every_cell_ran_to_its_end_on_the_server(cells: pd.DataFrame) -> None:
    assert sorted(set(cells["method"])) == sorted(METHODS)
    assert set(cells["staleness"]) == set(LAGS)
    assert set(cells["learner"]) == {"tinker(rank=8)"}
    assert set(cells["status"]) == {"completed"}
    counts = cells.groupby(["method", "staleness"]).size()
    assert set(counts) == {cells["seed"].nunique()}
    assert f"All {len(cells)} cells completed" in TEXT
    assert "Two seeds of 20 updates" in TEXT
    assert (cells["seed"].nunique(), set(cells["steps_done"])) == (2, {20})


def test_the_command_is_that_of_the_cells(cells: pd.DataFrame) -> None:
    (command,) = re.findall(r"vcpo-bench run (.*?) --jobs 1", TEXT)
    given = dict(re.findall(r"--([\w-]+) '?([^\s'-][^\s']*)", command.replace("\\", "")))
    for flag in ("learner", "record", "task", "prompts", "responses", "steps", "lr", "lr-warmup"):
        (used,) = set(cells[flag.replace("-", "_")].astype(str))
        if flag == "task":
            assert text_task(given[flag]).canonical == used
        else:
            assert float(used) == float(given[flag]) if used[0].isdigit() else used == given[flag]
    assert given["methods"].split(",") == METHODS
    assert given["staleness"] == ",".join(map(str, LAGS))
    assert int(given["seeds"]) == cells["seed"].nunique()


def test_the_model_has_the_size_that_the_page_says() -> None:
    """Two layers of width 64 with two heads of 32 and a hidden width of 128, over 99 characters, embeddings tied."""
    width, head, hidden, characters = 64, 32, 128, 99
    layer = 4 * width * 2 * head + 2 * head + 3 * width * hidden + 2 * width
    assert f"{2 * layer + width + characters * width:,} parameters (two layers of width 64, heads of 32" in TEXT


def test_the_table_of_the_page(cells: pd.DataFrame, steps: pd.DataFrame) -> None:
    for lag in LAGS:
        shown = [
            f"{part['final_reward'].mean():.2f} ({part['median_ess'].mean():.2f}, {scale:.2f})"
            for method in METHODS
            for part in [cells[(cells["method"] == method) & (cells["staleness"] == lag)]]
            for scale in [steps[steps["key"].isin(part.index)]["step_scale"].mean()]
        ]
        assert f"| {lag} | {' | '.join(shown)} |" in PAGE


def test_rewards_do_not_rise_and_the_page_says_so(cells: pd.DataFrame) -> None:
    (start,) = set(cells["start_reward"])
    assert f"to a sampled reward of {start:.2f} on the held-out prompts" in TEXT
    assert (cells.groupby(["method", "staleness"])["final_reward"].mean() < start).all()
    assert "**Rewards do not rise here**" in TEXT
    low, high = cells["final_reward"].agg(["min", "max"])
    assert f"From the start at {start:.2f}, single cells end at {low:.2f} to {high:.2f}" in TEXT
    error = (start * (1 - start) / 256) ** 0.5
    assert f"a reward of 256 responses has a standard error of {error:.2f}" in TEXT
    assert high - start < 2 * error
    evals = pd.read_csv(STUDY / "evals.csv")
    (before,) = set(evals[evals["step"] == 0]["greedy_reward"])
    low, high = cells["final_greedy"].agg(["min", "max"])
    assert high < before
    assert f"falls in all {len(cells)} cells, from {before:.2f} to {low:.2f} to {high:.2f}" in TEXT
    shares = 256 * evals[["greedy_reward", "sampled_reward"]]
    assert "on the 256 held-out prompts" in TEXT
    assert (shares == shares.round()).all(axis=None)


def test_the_scoreboard_is_of_these_cells(cells: pd.DataFrame) -> None:
    board = pd.read_csv(STUDY / "scoreboard.csv").set_index(["method", "staleness"])
    means = cells.groupby(["method", "staleness"])["final_reward"].mean()
    pd.testing.assert_series_equal(board["final_reward"].sort_index(), means.sort_index(), rtol=1e-4)


def test_the_lag_is_exact_in_every_update(cells: pd.DataFrame, steps: pd.DataFrame) -> None:
    lags = pd.read_csv(STUDY / "lags.csv").join(cells["staleness"], on="key")
    assert len(lags) == len(steps)
    assert (lags["lag"] == lags[["step", "staleness"]].min(axis=1)).all()
    assert set(lags["trajectories"]) == {64}
    assert "With 64 trajectories per update, 20 updates" in TEXT


def test_sampler_and_learner_are_one_policy_at_lag_0(steps: pd.DataFrame) -> None:
    fresh = steps[steps["lag_max"] == 0]
    largest = float(fresh["log_weight_max"].abs().max())
    assert largest < 1e-4
    (said,) = re.findall(r"largest log-weight of a response at lag 0 is ([\d.e-]+)", TEXT)
    assert float(said) == pytest.approx(largest, rel=0.05)
    assert float(steps[steps["step"] >= 4].query("staleness == 4")["ess_ratio"].max()) < 1


def test_only_vcpo_scales_its_steps(steps: pd.DataFrame) -> None:
    assert set(steps[steps["method"] != METHODS[0]]["step_scale"]) == {1.0}
    scaled = steps[(steps["method"] == METHODS[0]) & (steps["step"] > 0)]
    assert (scaled[scaled["staleness"] == 4]["step_scale"] < 1).all()
    assert ((scaled["step_scale"] - scaled["ess_ratio"] ** 0.5).abs() < 1e-6).all()  # as the page says
    assert ((scaled["lr"] - 5e-4 * scaled["step_scale"]).abs() < 1e-9).all()


def test_the_times_of_the_page(steps: pd.DataFrame) -> None:
    late = steps[steps["step"] >= 2]
    sampling, scoring, updating = (late[f"seconds_{name}"].median() for name in ("sample", "score", "update"))
    assert f"median of {sampling:.1f} s of sampling, {scoring:.1f} s of `forward` and {updating:.1f} s" in TEXT


def test_methods_make_the_same_updates_at_lag_0(steps: pd.DataFrame) -> None:
    fresh = steps[steps["staleness"] == 0].pivot(index=["seed", "step"], columns="method", values="grad_norm")
    assert len(fresh) == 20 * steps["seed"].nunique()
    assert (fresh.sub(fresh["clip"], axis=0).abs().max(axis=1) <= 1e-3 * fresh["clip"].abs() + 1e-6).all()


def test_what_a_server_does_not_send_is_empty_and_weights_move(steps: pd.DataFrame) -> None:
    assert "`entropy`, `grad_norm_clipped` and the gradient diagnostics are empty" in TEXT
    diagnostics = [one.name for one in DIAGNOSTICS.values() if isinstance(one, GradientDiagnostic)]
    unknown = steps[["entropy", "grad_norm_clipped", *(name for name in diagnostics if name in steps)]]
    assert len(unknown.columns) > 2
    assert unknown.isna().all(axis=None)
    assert (steps["grad_norm"] > 0).all()
