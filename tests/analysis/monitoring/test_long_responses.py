"""Detectors tuned on short responses are silent where a normal gap between engines alone would raise an alarm."""

from dataclasses import replace

import numpy as np
import pytest

from vcpo_bench.analysis.monitoring.alarm_panel import AlarmPanel
from vcpo_bench.analysis.monitoring.calibration import Calibration, load_calibrations
from vcpo_bench.analysis.monitoring.long_responses import GAP, too_long
from vcpo_bench.analysis.monitoring.monitor import Monitor
from vcpo_bench.analysis.monitoring.signal import all_signals

PACKAGED = {one.detector.signal: one for one in load_calibrations()}
SMOLLM2 = 59
"""Tokens of the responses of docs/studies/smollm2-first, whose fall `kl_length` announced."""


def deaf(one: Calibration, *lengths: float) -> list[bool]:
    return [bool(at) for at in too_long(one, all_signals()[one.detector.signal], np.array(lengths))]


@pytest.mark.parametrize("name", PACKAGED)
def test_what_adds_up_over_a_response_is_heard_until_the_gap_alone_passes_the_threshold(name: str) -> None:
    lengths = np.geomspace(1, 1e5, 300)
    heard = [not at for at in deaf(PACKAGED[name], *lengths)]
    assert all(heard[: lengths.searchsorted(2 * SMOLLM2)])
    assert heard == sorted(heard, reverse=True), "silent from one length on"
    assert heard[-1] == (name not in ("ess", "kl_length", "max_weight"))


def test_the_limit_is_where_length_times_gap_passes_the_threshold() -> None:
    limit = PACKAGED["kl_length"].detector.threshold / GAP
    assert deaf(PACKAGED["kl_length"], limit * 0.99, limit * 1.01) == [False, True]


def test_lengths_it_was_tuned_on_are_heard_whatever_they_are() -> None:
    tuned_there = replace(PACKAGED["kl_length"], lengths=(200, 9000))
    assert deaf(tuned_there, 9000, 9001) == [False, True]
    assert deaf(replace(tuned_there, lengths=None), 9001) == [False]
    assert deaf(tuned_there, float("nan")) == [False]


def test_signals_that_do_not_add_up_are_heard_at_any_length() -> None:
    for name in ("kl", "length_surge", "reward_drop", "dose"):
        one = replace(
            PACKAGED["kl_length"], detector=replace(PACKAGED["kl_length"].detector, signal=name, threshold=-9)
        )
        assert deaf(one, 1e6, 1e7) == [False, False], name


def test_the_monitor_is_silent_on_long_responses_and_speaks_on_short_ones() -> None:
    def alarms(length: float) -> tuple[int, tuple[str, ...]]:
        monitor = Monitor([PACKAGED["kl_length"]])
        readings = [monitor.step([0.0, 0.1], token_kl=8.0 / length, lengths=[length]) for _ in range(3)]
        return sum(len(one.alarms) for one in readings), readings[-1].silent

    assert alarms(9000) == (0, ("kl_length",))
    assert alarms(SMOLLM2) == (3, ())


def test_a_response_that_grew_too_long_ends_what_the_panel_hears() -> None:
    panel = AlarmPanel([PACKAGED["kl_length"]])
    spoken = [
        bool(panel.feed({"kl_mu_theta_k3": 0.0009, "length_mean": length})) for length in np.linspace(500, 12000, 40)
    ]
    assert not any(spoken)
