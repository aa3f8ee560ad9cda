"""The intervals of the boundary study are those of t over groups, which cover what they say in simulated studies."""

import numpy as np
import pandas as pd
import pytest
from boundary_study import coverage, design, means, page


def test_intervals_of_a_mean_over_groups() -> None:
    values = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    mean = means.over_groups(values, 0.6)
    reach = 2.776445 * values.std(ddof=1) / np.sqrt(5)
    assert (mean.low, mean.high) == (pytest.approx(0.7 - reach), pytest.approx(0.7 + reach))
    assert mean.low < mean.low90 < mean.high90 < mean.high
    assert means.over_groups(values, mean.low).p == pytest.approx(0.05)
    perfect = means.over_groups(np.ones(5), 0.6, means.perfect_error(40))
    assert perfect.low < 1
    assert 0 < perfect.p < 1e-4
    assert means.over_groups(np.zeros(5), 0.0).p == 1.0
    assert means.over_groups(np.ones(5), 0.0).p == 0.0


@pytest.mark.slow
def test_the_intervals_cover_as_the_registration_says() -> None:
    shipped = pd.read_csv(coverage.COVERAGE)
    again = coverage.coverage_table(studies=300, draws=100)
    assert (again["t_over_groups"] - shipped["t_over_groups"]).abs().max() < 0.06
    assert (again["bootstrap_of_places"] - shipped["bootstrap_of_places"]).abs().max() < 0.06


def test_t_intervals_were_chosen_because_the_bootstrap_covers_too_little() -> None:
    shipped = pd.read_csv(coverage.COVERAGE)
    assert sorted(set(zip(shipped["places"], shipped["groups"], strict=True))) == [(8, 5), (8, 8), (12, 8), (24, 10)]
    assert shipped["t_over_groups"].min() >= 0.9
    eight = shipped[shipped["places"] == design.LEAST_PLACES]
    text = " ".join(page.REGISTRATION.read_text().split())
    assert eight["bootstrap_of_places"].min() < 0.9
    assert f"covers as little as {eight['bootstrap_of_places'].min():.0%} in the simulated studies of 8" in text
    assert f"and one over groups {eight['bootstrap_of_groups'].min():.0%}" in text
    assert f"covers {shipped['t_over_groups'].min():.0%} or more in every layout" in text
