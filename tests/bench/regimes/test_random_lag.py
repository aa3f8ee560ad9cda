"""The laws of random lag, and traces that were measured elsewhere."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.regimes.random_lag import RandomLag, lag_probabilities
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
