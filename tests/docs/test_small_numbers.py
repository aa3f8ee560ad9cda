"""Numbers that pages say in passing: of designs, of exact tests, of simulations."""

import numpy as np
import pandas as pd
import pytest
import tuned_intervals
from boundary_study.design import PLACES
from page_prose import STUDIES, prose
from scorecard.catalog import all_facts

from vcpo_bench.analysis.comparison.best_learning_rate import CROSS_FIT

DOCS = STUDIES.parent
ANALYSIS = prose(DOCS / "analysis.md")


def test_where_the_boundary_study_ended() -> None:
    tried = pd.read_csv(STUDIES / "boundary" / "tried.csv").query("main > 0")
    missed = (tried["counts"] == "no").sum()
    text = prose(STUDIES / "boundary" / "README.md")
    assert f"The study ended after {len(tried)} of its {len(PLACES)} configurations" in text
    assert f"{missed} of the {len(tried)} missed the range." in text
    counted = tried[tried["counts"] == "yes"]
    assert f"{(counted['staleness'] == 16).sum()} of the {len(counted)} that count are at lag 16." in text


def test_how_small_p_can_be_in_the_acting_study() -> None:
    text = prose(STUDIES / "acting" / "README.md")
    contrasts, seeds, wave = 14, 16, 8
    least, of_wave = 2 / 2**seeds, 2 / 2**wave
    said = f"over {seeds} seeds cannot go below p = {least:.5f}, which is {contrasts * least:.4f} after"
    assert f"{said} correcting fourteen contrasts;" in text
    assert (
        f"over the {wave} of a wave it cannot go below {of_wave:.4f}, which is {contrasts * of_wave:.2f} then." in text
    )


def test_the_fill_of_the_protocol() -> None:
    scores = pd.read_csv(STUDIES / "protocol" / "tables" / "scores.csv")
    assert round(scores["last_step"].max() / scores["staleness"].max()) == 5
    assert "At lag 64 the fill is a fifth of the run." in prose(STUDIES / "protocol" / "README.md")


def test_which_facts_rest_on_older_seconds_and_which_on_a_toy() -> None:
    measured = sorted(fact.number for fact in all_facts() if "benchmarks/async.md" in fact.pages and fact.number != 12)
    toys = sorted(fact.number for fact in all_facts() if "benchmarks/prefix_chain.md" in fact.pages)
    readme = prose(DOCS.parent / "README.md")
    assert f"but facts {measured[0]} and {measured[1]} of the scorecard, and a part of fact 15, read tables" in readme
    assert f"Facts {toys[0]} and {toys[1]} are of a toy without a network, and fact 12 is of a simulation." in readme
    assert (len(measured), len(toys)) == (2, 2)


def test_how_often_the_bootstrap_of_few_seeds_covers() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for seeds in (2, 3, 4, 5):
        values = rng.normal(size=(2000, seeds))
        means = np.array([row[rng.integers(seeds, size=(1000, seeds))].mean(axis=1) for row in values])
        low, high = np.quantile(means, [0.025, 0.975], axis=1)
        shares.append(float(((low <= 0) & (high >= 0)).mean()))
    assert "covers 51% of the time with 2 seeds, 75% with 3, 80% with 4, 84% with 5." in ANALYSIS
    assert shares == pytest.approx([0.51, 0.75, 0.80, 0.84], abs=0.03)


@pytest.mark.slow
def test_how_far_intervals_of_tuned_runs_are_widened() -> None:
    said = "1.33 is needed with 2 learning rates, 1.46 with 3, 1.52 with 4, 1.58 with 5, 1.61 with 6 and 1.68 with 8."
    assert said in ANALYSIS
    for rates, value in zip(tuned_intervals.RATES, (1.33, 1.46, 1.52, 1.58, 1.61, 1.68), strict=True):
        worst = max(tuned_intervals.needed(seeds, rates, 4000).widening for seeds in tuned_intervals.SEEDS)
        assert worst == pytest.approx(value, abs=0.05)


def test_how_often_equal_methods_are_called_different() -> None:
    means = tuned_intervals.profile("one ahead", 5, 0.75)
    t = tuned_intervals.t_values(means, 16, 20_000, np.random.default_rng(0))
    shares = [float((t > widening).mean()) for widening in (1.0, 1.47, CROSS_FIT)]
    said = f"{shares[0]:.0%} of studies call the equal methods different without the widening, {shares[1]:.0%} with the"
    assert said in ANALYSIS
    assert f"{shares[2]:.0%} with this." in ANALYSIS
