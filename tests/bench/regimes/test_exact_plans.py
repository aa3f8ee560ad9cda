"""What schedules and clocks do, number by number, where a wrong index or a wrong extreme would pass unseen."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from vcpo_bench.bench.regimes import REGIMES, CellShape, service_times
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.regimes.service_times import ServiceTimes

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)


def test_the_first_token_of_a_response_in_flight_is_old_and_its_last_one_is_new() -> None:
    steady = [each for each in plan(REGIMES.parse("inflight").schedule(3, SHAPE), 12) if not each.filling]
    assert steady
    for each in steady:
        assert dict(each.oldest) == {each.update - 3: 8}
        assert dict(each.newest) == {each.update: 8}
        assert dict(each.lags) == {3: 8}


def test_a_whole_response_has_one_version() -> None:
    for each in plan(REGIMES.parse("fifo").schedule(3, SHAPE), 12):
        assert each.oldest == each.newest == {max(each.update - 3, 0): 8}


@pytest.mark.parametrize("draw", [0.0, 2.0**-53, 0.5])
def test_the_service_time_of_the_smallest_draw(monkeypatch: pytest.MonkeyPatch, draw: float) -> None:
    """Draws are multiples of 2^-53; zero, which has no normal quantile, counts as half of the smallest."""
    monkeypatch.setattr(service_times, "uniforms", lambda *_: np.full((1, 1), draw))
    quantile = NormalDist().inv_cdf(draw or 2.0**-54)
    found = ServiceTimes(3.0, 1.0, spread=0.5).group(SHAPE, 0, 6)
    assert found == pytest.approx(3.0 / 2 * math.exp(0.5 * quantile - 0.125), rel=1e-12)
