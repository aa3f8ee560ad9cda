"""Runs that are one run until shortly before a failure are one event."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.commands.prediction import Prediction
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws
from vcpo_bench.analysis.prediction.panel import LEADS, PRIMARY_LEAD, build_panel
from vcpo_bench.analysis.prediction.sentences import twins
from vcpo_bench.analysis.prediction.thresholds import folds
from vcpo_bench.analysis.prediction.twins import joined, twin_groups
from vcpo_bench.analysis.results import Results

Make = Callable[..., Results]


def pair(same: int, until: tuple[float, float], seeds: tuple[int, int] = (0, 0)) -> bool:
    """Are two runs twins, the same for so many of 50 updates?"""
    rng = np.random.default_rng(0)
    first, other = rng.normal(size=50), rng.normal(size=50)
    other[:same] = first[:same]
    table = pd.DataFrame({"key": np.repeat(["a", "b"], 50), "grad_norm": np.concatenate([first, other])})
    table = table.assign(batch_reward=np.nan, ess_ratio=1.0)
    runs = pd.DataFrame({"key": ["a", "b"], "task": "walk", "regime": "fifo", "method": "tis", "lr": 1e-3})
    group = twin_groups(table, runs.assign(seed=list(seeds)), np.array(until))
    return bool(group[0] == group[1])


@pytest.mark.parametrize(
    ("same", "until", "expected"),
    [
        (17, (17.0, 40.0), True),
        (16, (17.0, 40.0), False),  # they part before
        (17, (np.inf, 17.0), True),  # the other survives: a control that is its own case
        (50, (np.inf, np.inf), False),  # no event to count twice
        (50, (51.0, np.inf), False),  # not recorded that far
    ],
)
def test_what_makes_a_twin(same: int, until: tuple[float, float], expected: bool) -> None:
    assert pair(same, until) is expected


def test_other_seeds_are_no_twins() -> None:
    assert not pair(50, (10.0, 10.0), seeds=(0, 1))


def test_joined_numbers_agree_wherever_either_did() -> None:
    number = joined(np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 3, 4]))
    assert (number[:4] == number[0]).all()
    assert np.unique(number).size == 3


@pytest.fixture(scope="module")
def studied(make_study: Make, truths: dict[str, object]) -> tuple[Results, list[str]]:
    """A study in which one failed run at lag 16 and its seed at lag 64 record the same until the landmark."""
    results = make_study({"ess_ratio": truths["nothing"]}, seeds=6)
    panel = build_panel(results)
    assert panel.twins is not None
    assert np.unique(panel.twins).size == len(panel.runs)  # noise of its own in every run
    at = (panel.runs["staleness"] == 16) & (panel.runs["method"] == "wild") & panel.failed
    key = str(panel.runs.loc[at, "key"].iloc[0])
    keys = [key, key.replace("-16-", "-64-")]
    until = int(panel.found[panel.runs["key"].isin(keys)].min() - PRIMARY_LEAD)
    assert until > LEADS[0]
    steps = results.steps
    early = steps["step"] < until
    steps.loc[(steps["key"] == keys[1]) & early, "ess_ratio"] = steps.loc[
        (steps["key"] == keys[0]) & early, "ess_ratio"
    ].to_numpy()
    return results, keys


def test_twins_are_drawn_together_and_train_nothing_that_is_judged_on_them(
    studied: tuple[Results, list[str]],
) -> None:
    results, keys = studied
    panel = build_panel(results)
    two = panel.runs.index[panel.runs["key"].isin(keys)].to_numpy()
    assert panel.configuration[two[0]] != panel.configuration[two[1]]
    draws = bootstrap_draws(panel, 50)
    assert (draws[:, two[0]] == draws[:, two[1]]).all()
    assert np.unique(panel.cluster).size == np.unique(panel.configuration).size - 1
    assert all(test[two[0]] == test[two[1]] for test in folds(panel))


def test_twins_are_said(studied: tuple[Results, list[str]]) -> None:
    results, _ = studied
    panel = build_panel(results)
    found = Findings({"runs": panel.runs}, {"runs": own_key})
    (finding,) = twins(found, panel)
    said = "2 runs record the same as another of them until 20 updates before a collapse (1 different): only"
    assert finding.text.startswith(said)


def test_a_least_lag_leaves_out_the_runs_below_it(make_study: Make, truths: dict[str, object]) -> None:
    results = make_study({"ess_ratio": truths["nothing"]}, seeds=1)
    assert set(Prediction().run(results).tables["runs"]["staleness"]) == {16, 64}
    assert "No run has a lag of 65 or more" in Prediction(least_lag=65).run(results).statements[0].text
