"""The monitor: gauges against slow definitions, without scipy and pandas, and honest about what it was not given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpo_bench.analysis import Monitor
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k
from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.detectors import Detector

LOG_WEIGHTS = st.lists(st.floats(-30, 30), min_size=1, max_size=40)


def listening(signal: str, threshold: float, window: int = 1) -> Calibration:
    return Calibration(Detector(signal, window, threshold), None, None, None, "nowhere", 0, 0)


@given(LOG_WEIGHTS)
@settings(max_examples=100, deadline=None)
def test_weight_gauges_are_their_definitions(log_weights: list[float]) -> None:
    reading = Monitor([]).step(log_weights)
    weights = np.exp(np.array(log_weights))
    share = weights / weights.sum()
    n = len(log_weights)
    assert reading.ess == pytest.approx(weights.sum() ** 2 / (n * (weights**2).sum()))
    assert reading.entropy_ess == pytest.approx(np.exp(-(share * np.log(share)).sum()) / n)
    assert reading.max_share == pytest.approx(share.max())
    assert reading.max_log_weight == max(log_weights)
    assert reading.log_weight_var == pytest.approx(np.var(log_weights))
    assert reading.tis_deviation == pytest.approx(np.abs(np.minimum(weights, 8) - 1).mean())
    assert (reading.n, reading.nonfinite, reading.alarms) == (n, 0, ())


def test_the_tail_is_that_of_the_last_updates_pooled() -> None:
    generator, monitor = np.random.default_rng(0), Monitor([])
    batches = [generator.normal(0, 2, 64) for _ in range(30)]
    readings = [monitor.step(batch) for batch in batches]
    assert readings[-1].pareto_n == 20 * 64
    assert readings[-1].pareto_k == pytest.approx(float(pareto_k(np.concatenate(batches[10:]))))
    assert readings[0].pareto_n == 64
    assert Monitor([]).step(np.zeros(64)).pareto_k != readings[0].pareto_k  # on policy: not a number


def test_trends_and_scores_look_back_only() -> None:
    monitor = Monitor([])
    readings = [monitor.step([0.0, 0.1], rewards=[0.1 * t, 0.1 * t], grad_norm=1.0) for t in range(40)]
    assert np.isnan(readings[0].reward_trend)
    assert readings[-1].reward_trend == pytest.approx(0.1)
    assert readings[-1].grad_norm_z == 0
    assert monitor.step([0.0, 0.1], grad_norm=np.e).grad_norm_z == pytest.approx(1 / 0.05)


def test_what_was_not_given_is_nan_and_its_detector_is_said_to_be_silent() -> None:
    monitor = Monitor([listening("kl_length", 0.05), listening("ess", 100.0)])
    reading = monitor.step([0.0, 1.0])
    assert reading.silent == ("kl_length",)
    assert np.isnan([reading.kl_length, reading.grad_norm_z, reading.entropy, reading.reward]).all()
    heard = monitor.step([0.0, 1.0], token_kl=0.01, lengths=[5, 7])
    assert heard.kl_length == pytest.approx(0.06)
    assert heard.silent == ()
    assert [alarm.calibration.detector.signal for alarm in heard.alarms] == ["kl_length"]
    assert "ALARM kl_length 0.06 > 0.05 at step 1; rate not measured" in str(heard)


def test_detectors_may_listen_to_quantiles_and_to_other_columns() -> None:
    monitor = Monitor([listening("tis", 0.4), listening("grad_cosine", 0.9)])
    reading = monitor.step(np.full(9, np.log(1.5)), columns={"grad_cosine": 0.95})
    assert {alarm.calibration.detector.signal: alarm.score for alarm in reading.alarms} == pytest.approx(
        {"tis": 0.5, "grad_cosine": 0.95}
    )


def test_weights_that_are_not_finite_are_counted_and_poison_nothing_later() -> None:
    monitor = Monitor([])
    broken = monitor.step([0.0, np.nan, np.inf, -np.inf])
    assert broken.nonfinite == 2
    assert np.isnan([broken.ess, broken.max_log_weight, broken.tis_deviation]).all()
    assert monitor.step(np.random.default_rng(0).normal(size=50)).pareto_n == 50
    assert monitor.step([0.0, -np.inf]).ess == 0.5  # a weight of zero is a weight


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Monitor([]).step([])
    with pytest.raises(ValueError, match=r"sum over the tokens with .sum\(-1\)"):
        Monitor([]).step(np.zeros((4, 8)))
    assert Monitor([]).step(np.zeros((4, 1))).n == 4
    with pytest.raises(ValueError, match="no column is called 'grad_cosin'"):
        Monitor([]).step([0.0], columns={"grad_cosin": 1.0})


def test_gauges_are_for_a_logger() -> None:
    gauges = Monitor().step(np.zeros(4), rewards=[0, 1, 1, 1]).gauges()
    assert gauges["ess"] == 1
    assert gauges["reward"] == 0.75
    assert all(isinstance(value, int | float) for value in gauges.values())
