"""Seeds of one configuration share their fate: a signal that only knows the configuration is no predictor."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.findings import Findings, agreeing
from vcpo_bench.analysis.prediction.alarms import alarms_table
from vcpo_bench.analysis.prediction.auroc import NOTHING, auroc_row
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.overview import runs_table
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, LEAST_RUNS, TOO_FEW, Panel
from vcpo_bench.analysis.prediction.sentences import shared_fates

SEEDS, UPDATES = 6, 300


def study(rng: np.random.Generator, configurations: int = 24, lost: int = 10) -> Panel:
    """Some configurations lose every seed; ESS knows the configuration and nothing of its fate."""
    number = np.repeat(np.arange(configurations), SEEDS)
    failed = (rng.permutation(configurations) < lost)[number]
    onset = np.where(failed, rng.integers(8, 25, number.size) * 10.0, np.inf)
    level = rng.normal(size=configurations)[number] + 0.3 * rng.normal(size=number.size)
    values = level[:, None] + 0.1 * rng.normal(size=(number.size, UPDATES))
    runs = pd.DataFrame({"key": number.astype(str), "task": "walk", "regime": "fifo", "staleness": 16, "lr": 1e-3})
    runs = runs.assign(method=[f"m{one}" for one in number], seed=np.tile(np.arange(SEEDS), configurations))
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"), failed=failed, steps_done=UPDATES)
    return Panel(runs, {"ess": values}, onset, onset, np.full(number.size, float(UPDATES)), 10)


def test_such_a_signal_is_rarely_told_from_chance() -> None:
    """In 40% of such studies when runs are resampled, in 6.5% (400 studies) when configurations are."""
    rng, by_run, by_configuration, studies = np.random.default_rng(0), 0, 0, 100
    for number in range(studies):
        panel = study(rng)
        one = compare(panel, "ess", risk_sets(panel, 20))
        apart = replace(panel, runs=panel.runs.assign(lr=np.arange(len(panel.runs))))
        by_run += auroc_row(one, apart, bootstrap_draws(apart, 300, number))["verdict"] != NOTHING
        by_configuration += auroc_row(one, panel, bootstrap_draws(panel, 300, number))["verdict"] != NOTHING
    assert by_run >= 35
    assert by_configuration <= 15, "5% plus three standard errors of 100 studies, and what a bootstrap of 24 lacks"


def test_seeds_of_a_configuration_are_drawn_together() -> None:
    panel = study(np.random.default_rng(2))
    draws = bootstrap_draws(panel, 50).reshape(50, -1, SEEDS)
    assert (draws == draws[:, :, :1]).all()
    assert (draws[:, :, 0].sum(axis=1) == draws.shape[1]).all()


@pytest.mark.parametrize("configurations", [7, 24])
@pytest.mark.parametrize("few", ["collapsed", "healthy"])
def test_a_few_configurations_give_no_number_however_many_runs_they_have(configurations: int, few: str) -> None:
    scarce = min(LEAST_CONFIGURATIONS - 1, configurations // 2)
    panel = study(np.random.default_rng(3), configurations, scarce if few == "collapsed" else configurations - scarce)
    assert min(panel.failed.sum(), panel.healthy.sum()) >= LEAST_RUNS
    area = auroc_row(compare(panel, "ess", risk_sets(panel, 20)), panel, bootstrap_draws(panel, 50))
    assert area["verdict"] == TOO_FEW
    assert np.isnan([area[column] for column in ("value", "low", "high", "p")]).all()
    alarms = alarms_table(panel)
    assert (alarms["verdict"] == TOO_FEW).all()
    assert alarms["recall"].isna().all()


@pytest.mark.parametrize(
    ("lost", "words"),
    [(7, "not runs: with collapsed or healthy runs in only 7 of them, fewer than 8, none is given."), (8, "not runs.")],
)
def test_what_is_resampled_is_said(lost: int, words: str) -> None:
    columns = ["task", "method", "staleness", "lr", "started", "healthy", "collapsed", "nan", "stopped", "not_judged"]
    rows = [("walk", f"m{one}", 16, 1e-3, 6, 6 * (one >= lost), 6 * (one < lost), 0, 0, 0) for one in range(20)]
    rows[0] = ("walk", "m0", 16, 1e-3, 6, 4, 1, 1, 0, 0)
    table = pd.DataFrame(rows, columns=columns)
    cells = pd.DataFrame({"key": ["a"], "task": ["walk"], "method": ["m0"], "staleness": [16], "lr": [1e-3]})
    found = Findings({"runs": table}, {"runs": agreeing(cells, "method")})
    (text,) = [finding.text for finding in shared_fates(found)]
    assert text.startswith("In 19 of 20 configurations with several seeds")
    assert text.endswith(f"Intervals resample configurations, {words}")


def test_configurations_of_two_regimes_are_counted_apart(make_study, truths) -> None:
    results = make_study({"ess_ratio": truths["nothing"]}, seeds=2)
    results.cells.loc[results.cells["seed"] == 1, "regime"] = "periodic"
    assert len(runs_table(results)) == 24
