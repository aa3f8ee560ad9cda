"""Detectors: trailing only, robust to missing values, and the same bits when fed one value at a time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.analysis.monitoring.detectors import Detector, DetectorStream, Episode, episodes

VALUES = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf, 0.0])), min_size=0, max_size=40
)
DETECTORS = st.builds(
    Detector,
    signal=st.just("ess"),
    window=st.integers(1, 12),
    threshold=st.floats(-100, 100),
    persistence=st.integers(1, 5),
)


def slow(detector: Detector, values: list[float]) -> tuple[list[float], list[bool]]:
    """The definition, one update at a time."""
    scores: list[float] = []
    for t in range(len(values)):
        window = [v for v in values[max(0, t + 1 - detector.window) : t + 1] if not math.isnan(v)]
        scores.append(sum(window) / len(window) if window else math.nan)
    alarms = [
        t + 1 >= detector.persistence
        and all(score > detector.threshold for score in scores[t + 1 - detector.persistence : t + 1])
        for t in range(len(values))
    ]
    return scores, alarms


@given(DETECTORS, VALUES)
@settings(max_examples=200, deadline=None)
def test_stream_and_series_are_the_definition(detector: Detector, values: list[float]) -> None:
    scores, alarms = slow(detector, values)
    np.testing.assert_array_equal(detector.scores(values), scores)
    np.testing.assert_array_equal(detector.alarms(values), alarms)
    stream = DetectorStream(detector)
    fed = [(stream.feed(value), stream.score) for value in values]
    np.testing.assert_array_equal([alarm for alarm, _ in fed], alarms)
    np.testing.assert_array_equal([score for _, score in fed], scores)


@given(DETECTORS, VALUES, VALUES)
@settings(max_examples=50, deadline=None)
def test_the_future_changes_nothing(detector: Detector, past: list[float], future: list[float]) -> None:
    np.testing.assert_array_equal(detector.scores(past + future)[: len(past)], detector.scores(past))
    np.testing.assert_array_equal(detector.alarms(past + future)[: len(past)], detector.alarms(past))


def test_mean_persistence_and_missing_values_by_hand() -> None:
    detector = Detector("kl", window=2, threshold=1.0, persistence=2)
    values = [0.0, 2.0, 2.0, math.nan, 0.0, 4.0, math.nan, math.nan, 9.0]
    np.testing.assert_array_equal(detector.scores(values), [0, 1, 2, 2, 0, 2, 4, math.nan, 9])
    assert detector.alarms(values).tolist() == [False, False, False, True, False, False, True, False, False]


def test_an_infinite_value_is_an_alarm_while_it_is_in_the_window() -> None:
    detector = Detector("grad_norm_z", window=3, threshold=5.0)
    assert detector.alarms([0.0, math.inf, 0.0, 0.0, 0.0]).tolist() == [False, True, True, True, False]


def test_alarms_close_together_are_one_episode() -> None:
    alarms = np.zeros(30, dtype=bool)
    alarms[[0, 3, 8, 20, 21]] = True
    assert episodes(alarms, refractory=5) == [Episode(0, 8), Episode(20, 21)]
    assert episodes(alarms, refractory=4) == [Episode(0, 3), Episode(8, 8), Episode(20, 21)]
    assert episodes(alarms, refractory=0) == [Episode(i, i) for i in (0, 3, 8, 20, 21)]
    assert episodes(np.zeros(4, dtype=bool), refractory=5) == []


@pytest.mark.parametrize("wrong", [{"window": 0}, {"persistence": 0}, {"threshold": math.nan}])
def test_meaningless_detectors_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Detector(**({"signal": "ess", "window": 1, "threshold": 0.0} | wrong))  # type: ignore[arg-type]
