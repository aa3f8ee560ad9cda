from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import ArrayLike

from vcpo_bench.analysis.monitoring.detectors import REFRACTORY, Detector, beginnings
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.alarm_outcomes import Clock, clock, held, outcomes
from vcpo_bench.analysis.prediction.alarms import alarms_table
from vcpo_bench.analysis.prediction.panel import build_panel
from vcpo_bench.analysis.prediction.thresholds import folds, levels, peaks, share_threshold, tune

SIGNALS = all_signals()

FEW = {name: SIGNALS[name] for name in ("ess", "kl")}


@pytest.mark.parametrize(("window", "persistence", "threshold"), [(1, 1, 0.8), (5, 1, 0.3), (5, 4, 0.0), (20, 5, -0.1)])
def test_alarms_and_episodes_are_those_of_the_online_detector(window: int, persistence: int, threshold: float) -> None:
    values = np.random.default_rng(0).normal(size=(4, 200))
    values[1, 50:60] = np.nan
    alarms = held(streamed_mean(values, window), persistence) > threshold
    detector = Detector("ess", window, threshold, persistence)
    for row, mine, begin in zip(values, alarms, beginnings(alarms), strict=True):
        np.testing.assert_array_equal(mine, detector.alarms(row))
        assert list(np.flatnonzero(begin)) == [one.first for one in episodes(mine, REFRACTORY)]
    assert alarms.any()


def time_of(onset: list[float], length: int = 300) -> Clock:
    class Runs:
        pass

    panel = Runs()
    panel.onset, panel.end, panel.length = np.array(onset), np.full(len(onset), float(length)), length
    return clock(panel)


def spoken(*updates: tuple[int, int], length: int = 300) -> np.ndarray:
    """Level 1 from the first to the last of these updates (0-based rows), else 0."""
    level = np.zeros(length)
    for first, last in updates:
        level[first : last + 1] = 1.0
    return level


@pytest.mark.parametrize(
    ("updates", "caught", "lead", "false"),
    [
        ([(149, 149)], True, 50.0, 0),  # the record of row 149 is known after 150 updates
        ([(189, 199)], True, 10.0, 0),
        ([(190, 199)], False, None, 0),  # nine updates before: too late to act on
        ([(205, 205)], False, None, 0),  # after the fact
        ([(99, 99)], True, 100.0, 0),
        ([(20, 20)], False, None, 1),
        ([(20, 199)], False, None, 1),  # always on is not a warning
        ([(20, 20), (150, 150), (165, 165)], True, 49.0, 1),  # the last two are one episode
        ([], False, None, 0),
    ],
)
def test_what_an_alarm_is_worth_depends_on_when_it_begins(updates, caught, lead, false) -> None:
    result = outcomes(spoken(*updates)[None, :], 0.5, time_of([200.0]))
    assert bool(result.caught[0]) == caught
    assert (np.isnan(result.lead[0]) if lead is None else result.lead[0] == lead) or caught is False
    assert result.false[0] == false


def test_every_episode_of_a_healthy_run_is_false() -> None:
    level = np.stack([spoken((10, 10), (15, 15), (100, 120), (250, 250)), spoken()])
    result = outcomes(level, 0.5, time_of([np.inf, np.inf]))
    np.testing.assert_array_equal(result.false, [3, 0])
    np.testing.assert_array_equal(result.exposure, [300, 300])
    np.testing.assert_array_equal(result.first, [11, np.inf])
    assert not result.caught.any()


def test_peace_before_a_loss_ends_where_an_alarm_would_catch_it() -> None:
    result = outcomes(spoken()[None, :], 0.5, time_of([200.0]))
    assert result.exposure[0] == 99  # alarms known after 1 to 99 updates are more than 100 early


@pytest.mark.parametrize("target", [0.0, 0.1, 0.5, 0.99])
def test_at_most_the_target_share_of_training_runs_is_alarmed(target: float) -> None:
    peaks_of_runs = np.random.default_rng(1).integers(0, 8, 37).astype(float)
    threshold = share_threshold(peaks_of_runs, target)
    assert (peaks_of_runs > threshold).mean() <= target
    lower = peaks_of_runs[peaks_of_runs < threshold]
    if lower.size:  # and no smaller threshold among the peaks would do
        assert (peaks_of_runs > lower.max()).mean() > target
    assert share_threshold(peaks_of_runs, 1.0) == -np.inf


@pytest.fixture(scope="module")
def panel(make_study, truths):
    return build_panel(make_study({"ess_ratio": truths["leads"], "kl_mu_theta_k3": truths["clock"]}, seeds=6), FEW)


def test_every_run_is_held_out_once_and_its_seed_with_it(panel) -> None:
    parts, seeds = folds(panel), panel.runs["seed"].to_numpy()
    np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
    assert len(parts) == 3
    assert not any(set(seeds[test]) & set(seeds[~test]) for test in parts)
    assert folds(replace(panel, runs=panel.runs.assign(seed=0))) == []


def test_thresholds_do_not_depend_on_the_held_out_runs(panel) -> None:
    test, time, choices = folds(panel)[0], clock(panel), levels(panel, "ess")
    assert set(choices) == {(window, p) for window in (1, 5, 20) for p in (1, 5)}  # those docs/analysis.md names
    before = tune(choices, peaks(choices, time), time, panel, ~test)
    changed = {key: np.where(test[:, None], 99.0, level) for key, level in choices.items()}
    assert tune(changed, peaks(changed, time), time, panel, ~test) == before
    assert tune(choices, peaks(choices, time), time, panel, ~test & panel.failed) is None


def test_the_table_counts_what_detectors_of_other_seeds_did(panel) -> None:
    row = alarms_table(panel).set_index("signal").loc["ess"]
    time, choices = clock(panel), levels(panel, "ess")
    caught, alarmed, leads = 0, 0, list[float]()
    for test in folds(panel):
        tuned = tune(choices, peaks(choices, time), time, panel, ~test)
        assert tuned is not None
        did = outcomes(choices[tuned.window, tuned.persistence], tuned.threshold, time)
        caught += (did.caught & test & panel.failed).sum()
        alarmed += ((did.false > 0) & test & panel.healthy).sum()
        leads += did.lead[did.caught & test].tolist()
    assert row["recall"] == pytest.approx(caught / panel.failed.sum())
    assert row["healthy_alarmed"] == pytest.approx(alarmed / panel.healthy.sum())
    assert row["lead_median"] == np.median(leads)


def test_alarms_close_together_are_one_episode() -> None:
    alarms = np.zeros(30, dtype=bool)
    alarms[[0, 3, 8, 20, 21]] = True
    assert episodes(alarms, refractory=5) == [AlarmEpisode(0, 8), AlarmEpisode(20, 21)]
    assert episodes(alarms, refractory=4) == [AlarmEpisode(0, 3), AlarmEpisode(8, 8), AlarmEpisode(20, 21)]
    assert episodes(alarms, refractory=0) == [AlarmEpisode(i, i) for i in (0, 3, 8, 20, 21)]
    assert episodes(np.zeros(4, dtype=bool), refractory=5) == []


class AlarmEpisode(NamedTuple):
    """Alarms close together, counted as one: the positions of the first and the last of them."""

    first: int
    last: int


def episodes(alarms: ArrayLike, refractory: int) -> list[AlarmEpisode]:
    """Merge alarms [S]: one at most `refractory` updates after the one before belongs to its episode."""
    found: list[AlarmEpisode] = []
    for at in np.flatnonzero(np.asarray(alarms, dtype=bool)).tolist():
        if found and at - found[-1].last <= refractory:
            found[-1] = AlarmEpisode(found[-1].first, at)
        else:
            found.append(AlarmEpisode(at, at))
    return found
