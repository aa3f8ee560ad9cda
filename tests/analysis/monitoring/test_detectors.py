"""Detectors: trailing only, robust to missing values, and the same bits when fed one value at a time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.analysis.monitoring.detectors import Detector, DetectorStream, read_detector
from vcpo_bench.naming.errors import ExpressionError

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


@pytest.mark.parametrize("wrong", [{"window": 0}, {"persistence": 0}, {"threshold": math.nan}])
def test_meaningless_detectors_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Detector(**({"signal": "ess", "window": 1, "threshold": 0.0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [0.1 + 0.2, -1e-30, float("inf"), 3.0])
def test_the_text_of_a_detector_is_exact(threshold: float) -> None:
    detector = Detector("grad_norm_z", 7, threshold, 3)
    assert detector.text == f"grad_norm_z(window=7,threshold={threshold!r},persistence=3)"
    assert read_detector(detector.text) == detector


def test_a_text_may_be_written_by_hand() -> None:
    assert read_detector(" ess( threshold = 1/4 , window=3 ) ") == Detector("ess", 3, 0.25, 1)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("ess", 3, "window is missing; write ess(window=10,threshold=2.3,persistence=2)"),
        ("ess(window=1)", 3, "threshold is missing; write ess("),
        (
            "ess(3)",
            4,
            "expected key=value; ess takes: window (a whole number, 1 or more); threshold (a number); persist",
        ),
        ("ess(window=0,threshold=1.0)", 11, "window=0 is not legal. window must be a whole number, 1 or more"),
        ("ess(window=1,threshold=x)", 23, "threshold=x is not legal"),
        ("ess(window=1,threshold=nan)", 23, "threshold=nan is not legal"),
        ("ess(windo=1,threshold=1)", 4, "ess has no parameter 'windo'; did you mean window?"),
        ("ess:raw(window=1,threshold=1)", 3, "':' after the name of a signal"),
        ("ess(window=1,threshold=1", 3, "never closed"),
        ("", 0, "missing"),
    ],
)
def test_a_text_that_is_no_detector_is_refused_at_its_character(text: str, position: int, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read_detector(text)
    assert caught.value.position == position
    assert words in caught.value.problem
