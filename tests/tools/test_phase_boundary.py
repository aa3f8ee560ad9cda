"""The model of boundaries known between two bounds: its profile is that of a brute search, and its intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from phase_study import boundary, contrasts
from phase_study.boundary import Estimate, estimate
from phase_study.contrasts import RATE_MARGIN
from phase_study.tables import EXPONENTS, FOLDER

Array = NDArray[np.float64]
SHIFTS = contrasts._SHIFTS
DEVIATIONS = boundary.LEAST_DEVIATION + np.exp(np.linspace(-6, 3, 300))


def of_pairs(low: float, high: float, seeds: int) -> Estimate:
    """The estimate where the difference of every pair lies between the same bounds."""
    ones = np.ones(seeds)
    return estimate(low * ones, high * ones, ones, SHIFTS)


def brute(low: Array, high: Array, design: Array, grid: Array, with_intercept: bool) -> Array:
    """`[m]` the profile of the log-likelihood over a dense grid of deviations and intercepts."""
    heights = []
    for value in grid:
        ends = [end - value * design for end in (low, high)]
        known = np.concatenate([end[np.isfinite(end)] for end in ends])
        centers = np.linspace(known.min(), known.max(), 400) if with_intercept else np.zeros(1)
        bounds = [(end - centers[:, None])[:, None, :] / DEVIATIONS[None, :, None] for end in ends]
        heights.append(boundary._log_mass(*bounds).sum(axis=2).max())
    return np.array(heights)


def drawn(random: np.random.Generator, values: int, center: float) -> tuple[Array, Array]:
    """Bounds on the ladder's rungs, open at its ends."""
    low = np.floor(center + random.choice([0.2, 0.6, 1.5]) * random.normal(size=values)).clip(-1, 8)
    return np.where(low < 0, -np.inf, low), np.where(low >= 8, np.inf, low + 1)


def test_equal_pairs_have_the_interval_of_their_likelihood() -> None:
    found = of_pairs(-1, 1, 4)
    assert (found.value, found.low, found.high) == pytest.approx((0, -1.04, 1.04), abs=0.01)
    found = of_pairs(0, 2, 5)
    assert (found.value, found.low, found.high) == pytest.approx((1, 0.06, 1.94), abs=0.01)
    assert contrasts.verdict(*found[1:], margin=RATE_MARGIN, values=5) == "more"


def test_how_far_equal_boundaries_reach_is_as_registered() -> None:
    reach = {seeds: 2 ** contrasts._reach(seeds) for seeds in (4, 8)}
    text = " ".join((FOLDER / "registration.md").read_text(encoding="utf-8").split())
    assert (
        f"it is a factor of {reach[4]:.1f} at 4 seeds and {reach[8]:.1f} at 8, so *equivalent* is out of reach" in text
    )
    assert min(reach.values()) > 2**RATE_MARGIN


def test_an_estimate_that_the_searched_values_cut_off_is_no_number() -> None:
    above, below = of_pairs(2, np.inf, 4), of_pairs(-np.inf, -2, 4)
    assert np.isnan([above.value, below.value]).all()
    assert above.low == pytest.approx(-below.high)
    assert (above.high, below.low) == (np.inf, -np.inf)
    assert [contrasts.verdict(*each[1:], margin=RATE_MARGIN, values=4) for each in (above, below)] == ["more", "less"]


def test_of_values_that_are_as_likely_the_middle_one_is_the_estimate() -> None:
    """Rounding alone would choose among them, and another machine another one."""
    low, high = np.array([0.0, 0.0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 4.0, 4.0])
    assert estimate(4 * low, 4 * high, np.ones(4), np.arange(-20, 20.01, 0.5)).value == pytest.approx(8.0)


def test_rounding_does_not_move_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, random = boundary._log_mass, np.random.default_rng(0)
    found = of_pairs(-1, 1, 4)

    def rounded(low: Array, high: Array) -> Array:
        mass = exact(low, high)
        return np.asarray(mass * (1 + 2e-16 * random.integers(-1, 2, size=mass.shape)))

    monkeypatch.setattr(boundary, "_log_mass", rounded)
    assert of_pairs(-1, 1, 4) == pytest.approx(found, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("case", range(12))
def test_the_profile_of_pairs_is_that_of_a_brute_search(case: int) -> None:
    random = np.random.default_rng(case)
    low, high = drawn(random, 4, random.uniform(0, 8))
    if case % 2:
        other_low, other_high = drawn(random, 4, random.uniform(0, 8))
        low, high = low - other_high, high - other_low
        low, high = low[said := np.isfinite(low) | np.isfinite(high)], high[said]
    ones = np.ones(len(low))
    heights = boundary._profile(low, high, ones, SHIFTS, with_intercept=False)
    assert heights == pytest.approx(brute(low, high, ones, SHIFTS, False), abs=0.01)


@pytest.mark.parametrize("case", range(4))
def test_the_profile_of_an_exponent_is_that_of_a_brute_search(case: int) -> None:
    random = np.random.default_rng(case)
    x = np.repeat(np.log2([4.0, 16.0, 64.0]), 4)
    low, high = drawn(random, x.size, 8 - random.uniform(0, 1.2) * x)
    grid = EXPONENTS[::16]
    heights = boundary._profile(low, high, -x, grid, with_intercept=True)
    assert heights == pytest.approx(brute(low, high, -x, grid, True), abs=0.02)


def test_the_interval_covers_as_it_says() -> None:
    random, covered = np.random.default_rng(0), 0
    x = np.repeat(np.log2([4.0, 16.0, 64.0]), 4)
    for _ in range(40):
        low = np.floor(6.2 - 0.8 * x + random.normal(size=x.size) * 0.6)
        found = estimate(low, low + 1, -x, np.arange(-0.5, 2.01, 0.1))
        covered += found.low <= 0.8 <= found.high
    assert covered >= 34, "95% of 40 less four standard errors"
