"""Pairs of runs of one cluster weigh in a replicate what they weigh in the sample, however often it is drawn."""

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare, risk_sets
from vcpo_bench.analysis.prediction.panel import MATCH, Panel

METHODS, RATES, SEEDS, UPDATES = 24, 4, 6, 200


def mixed(rng: np.random.Generator) -> Panel:
    """Fates depend on the learning rate and on chance; ESS is the learning rate, told with noise."""
    place = pd.MultiIndex.from_product([range(METHODS), range(RATES), range(SEEDS)], names=["method", "rate", "seed"])
    runs = place.to_frame(index=False)
    rate = runs["rate"].to_numpy(float)
    failed = rng.random(len(runs)) < 1 / (1 + np.exp(-1.5 * (rate - 1.5)))
    onset = np.where(failed, 100.0, np.inf)
    ess = np.repeat((rate + 0.01 * rng.normal(size=rate.size))[:, None], UPDATES, axis=1)
    known = np.repeat(rate[:, None], UPDATES, axis=1)
    runs = runs.assign(key=[str(n) for n in range(len(runs))], task="walk", regime="fifo", staleness=16)
    runs = runs.assign(lr=1e-4 * 2**rate, steps_done=UPDATES, failed=failed)
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"))
    return Panel(runs, {"ess": ess, "lr": known}, onset, onset, np.full(len(runs), float(UPDATES)), 10)


def test_a_replicate_counts_the_controls_of_its_own_cluster_once() -> None:
    panel = mixed(np.random.default_rng(0))
    one = compare(panel, "lr", risk_sets(panel, 20, (*MATCH, "method")))
    draws = bootstrap_draws(panel, 3)
    for drawn, area in zip(draws, one.replicates(draws, panel.cluster), strict=True):
        shares, cases = 0.0, 0.0
        for row, case in enumerate(one.case):
            alike = panel.cluster == panel.cluster[case]
            weight = np.where(alike, 1.0, drawn) * one.usable[row]
            if drawn[case] and weight.sum() > 0:
                shares += drawn[case] * (weight * one.wins[row]).sum() / weight.sum()
                cases += drawn[case]
        assert area == pytest.approx(shares / cases)
    whole = compare(panel, "ess", risk_sets(panel, 20))
    assert not np.allclose(whole.replicates(draws), whole.replicates(draws, panel.cluster))


def test_ties_within_a_cluster_do_not_pull_a_rival_down() -> None:
    """The learning rate ties within every configuration, whose pairs are few among all pairs."""
    shifts, naive = [], []
    for seed in range(10):
        panel = mixed(np.random.default_rng(seed))
        one, draws = compare(panel, "lr", risk_sets(panel, 20)), bootstrap_draws(panel, 300)
        shifts.append(one.replicates(draws, panel.cluster).mean() - one.auroc())
        naive.append(one.replicates(draws).mean() - one.auroc())
    assert abs(np.mean(shifts)) < 0.6 * abs(np.mean(naive))
