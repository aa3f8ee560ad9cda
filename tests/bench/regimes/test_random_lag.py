"""The laws of random lag against an independent computation, and traces that were measured elsewhere."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.regimes.random_lag import RandomLag, RandomLagSchedule, lag_probabilities
from vcpo_bench.errors import UsageError

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)


@pytest.mark.parametrize("law", ["uniform", "geometric", "poisson", "two-point"])
@pytest.mark.parametrize("unit", ["batch", "trajectory"])
def test_random_lags_follow_their_law(law: str, unit: str) -> None:
    shape = SHAPE._replace(prompts=1, responses=1) if unit == "batch" else SHAPE
    updates = 3000 if unit == "batch" else 400
    counts: Counter[int] = Counter()
    for each in plan(REGIMES.parse(f"random({law},unit={unit})").schedule(6, shape), updates):
        if each.update >= 6:
            counts += each.lags
    expected = lag_probabilities(law, 6, 0.0, 0.1)
    observed = np.array([counts[lag] for lag in range(7)]) / counts.total()
    assert expected.sum() == pytest.approx(1)
    assert np.abs(observed - expected).max() < 5 * np.sqrt(0.25 / counts.total())
    assert (observed[expected == 0] == 0).all()


def test_untruncated_means_are_those_asked_for() -> None:
    lags = np.arange(401)
    for law in ("geometric", "poisson"):
        assert (lag_probabilities(law, 400, 7.0, 0.0) * lags).sum() == pytest.approx(7, rel=1e-6)


def test_trace_files_are_read_and_become_part_of_the_expression(tmp_path: Path) -> None:
    file = tmp_path / "lags.txt"
    file.write_text("0, 2\n4 1\n")
    regime = REGIMES.parse(f"random(trace={file})")
    assert regime.text() == "random(law=trace,trace=[0 2 4 1])"
    assert REGIMES.parse(regime.text()) == regime
    lags = [max(each.lags) for each in plan(regime.schedule(4, SHAPE), 12)]
    assert lags[4:] == [0, 2, 4, 1] * 2
    file.write_text("0 nonsense")
    with pytest.raises(UsageError, match="not legal"):
        REGIMES.parse(f"random(trace={file})")
    file.write_text(" \n")
    with pytest.raises(UsageError, match="there are no lags in it"):
        REGIMES.parse(f"random(trace={file})")


def test_a_trace_makes_its_own_law() -> None:
    assert RandomLag(trace=(0, 2)) == REGIMES.parse("random(poisson,trace=[0 2])")
    with pytest.raises(UsageError, match="whole numbers"):
        RandomLag(trace=(0, -2))
    with pytest.raises(UsageError, match="whole numbers"):
        RandomLag(trace=[0, 2])  # type: ignore[arg-type]


MEANS = [1e-300, 1e-6, 0.5, 4.0, 30.0, 800.0, 1e6, 1e300]
LAGS = [0, 1, 4, 64, 2000]
LAWS = ["uniform", "geometric", "poisson", "two-point"]
DRAWS = 4000


def expected(law: str, staleness: int, mean: float, share: float) -> np.ndarray:
    """The law truncated to 0..k, from scipy's log-probabilities or exact fractions."""
    lags = np.arange(staleness + 1)
    if law == "two-point":
        chance = np.zeros(staleness + 1)
        chance[0] += 1 - share
        chance[-1] += share
        return chance
    if law == "uniform":
        return np.full(staleness + 1, 1 / (staleness + 1))
    if law == "geometric":
        ratio = Fraction(mean) / (1 + Fraction(mean))
        logs = lags * float(np.log1p(-float(1 / (1 + Fraction(mean))))) if ratio > 0.5 else lags * np.log(float(ratio))
    else:
        logs = stats.poisson.logpmf(lags, mean) if mean < 1e100 else lags * np.log(mean)
    logs = logs - logs.max()
    return np.exp(logs) / np.exp(logs).sum()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("staleness", LAGS)
def test_probabilities(law: str, staleness: int) -> None:
    for mean in MEANS:
        for share in (0.0, 0.1, 0.999):
            found = lag_probabilities(law, staleness, mean, share)
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found, expected(law, staleness, mean, share), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("staleness", [1, 64])
@pytest.mark.parametrize("law", ["geometric", "poisson"])
def test_the_default_mean_is_a_fraction_of_the_largest_lag(law: str, staleness: int) -> None:
    mean = staleness / (4 if law == "geometric" else 2)
    found = lag_probabilities(law, staleness, 0.0, 0.1)
    np.testing.assert_allclose(found, lag_probabilities(law, staleness, mean, 0.1))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("staleness", [0, 4, 64])
def test_draws(law: str, mean: float, staleness: int) -> None:
    """Every update draws for 4000 trajectories; a lag without probability is never drawn."""
    shape = CellShape(seed=3, prompts=DRAWS // 8, responses=8, tokens=12)
    chance = expected(law, staleness, mean, 0.3)
    schedule = RandomLagSchedule(
        staleness, shape, probabilities=lag_probabilities(law, staleness, mean, 0.3), per_trajectory=True
    )
    counts = np.bincount(schedule.lags(1000), minlength=staleness + 1)
    spread = np.sqrt(DRAWS * chance * (1 - chance))
    assert (counts[chance < 1e-12] == 0).all()
    assert (np.abs(counts - DRAWS * chance) <= 5 * spread + 1).all()


def test_a_poisson_law_far_above_the_largest_lag_is_the_largest_lag() -> None:
    """The weights underflowed to zero, and every lag became 0."""
    probabilities = lag_probabilities("poisson", 4, 800.0, 0.1)
    assert probabilities[4] == pytest.approx(1, abs=0.01)
    schedule = RandomLagSchedule(4, CellShape(0, 4, 2, 12), probabilities=probabilities)
    lags = [int(schedule.lags(update)[0]) for update in range(4, 200)]
    assert np.mean(lags) > 3.9
