import json

import numpy as np
import pytest
from alarm_episodes import AlarmEpisode, episodes

from vcpo_bench.analysis.monitoring.calibration import load_calibrations
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.monitoring.episodes import REFRACTORY, beginnings
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.alarm_outcomes import Clock, clock, held, outcomes, placebo
from vcpo_bench.analysis.prediction.export_detectors import detectors_json
from vcpo_bench.analysis.prediction.operating_points import alarm_tables
from vcpo_bench.analysis.prediction.panel import build_panel
from vcpo_bench.analysis.prediction.thresholds import cross_fitted, folds, levels, peaks, share_threshold, tune

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
    ("updates", "caught", "lead", "late", "early", "false", "hits"),
    [
        ([(149, 149)], True, 50.0, False, False, 0, 1),  # the record of row 149 is known after 150 updates
        ([(189, 199)], True, 10.0, False, False, 0, 1),
        ([(190, 199)], False, None, True, False, 0, 0),  # nine updates before: too late to act on
        ([(205, 205)], False, None, True, False, 0, 0),  # after the fact
        ([(99, 99)], True, 100.0, False, False, 0, 1),
        ([(20, 20)], False, None, False, True, 1, 0),
        ([(20, 199)], False, None, False, True, 1, 0),  # always on is not a warning
        ([(20, 20), (150, 150), (165, 165)], True, 49.0, False, False, 1, 1),  # the last two are one episode
        ([], False, None, False, False, 0, 0),
    ],
)
def test_what_an_alarm_is_worth_depends_on_when_it_begins(updates, caught, lead, late, early, false, hits) -> None:
    result = outcomes(spoken(*updates)[None, :], 0.5, time_of([200.0]))
    assert bool(result.caught[0]) == caught
    assert (np.isnan(result.lead[0]) if lead is None else result.lead[0] == lead) or caught is False
    assert (bool(result.late[0]), bool(result.early[0])) == (late, early)
    assert (result.false[0], result.hits[0]) == (false, hits)


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


def test_random_alarms_catch_what_their_rate_says() -> None:
    time = time_of([200.0] * 40 + [np.inf] * 40)
    level = np.stack([spoken((50, 50))] * 80)
    result = outcomes(level, 0.5, time)
    failed = np.isfinite(time.lead[:, 0])
    rate = 80 / (40 * 199 + 40 * 300)
    for unit, seeds in ((np.arange(80), 1), (np.arange(80) // 8, 8)):
        expected, drawn = placebo(result, time, failed, unit)
        assert expected == pytest.approx(1 - (1 - rate) ** 91)
        assert drawn.mean() / 40 == pytest.approx(expected, abs=0.02)
        spread = np.sqrt(expected * (1 - expected) * 40 * seeds)
        assert drawn.std() == pytest.approx(spread, rel=0.1), "seeds of a configuration share their luck"


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


@pytest.mark.parametrize("column", ["seed", "staleness", "method"])
def test_every_run_is_held_out_once_and_its_group_with_it(panel, column: str) -> None:
    parts = folds(panel, column)
    np.testing.assert_array_equal(np.sum([fold.test for fold in parts], axis=0), 1)
    for fold in parts:
        values = panel.runs[column].to_numpy()
        assert not set(values[fold.test]) & set(values[fold.train])
    assert folds(panel, "task") == []


def test_thresholds_do_not_depend_on_the_held_out_runs(panel) -> None:
    fold, time, choices = folds(panel, "seed")[0], clock(panel), levels(panel, "ess")
    assert set(choices) == {(window, p) for window in (1, 5, 20) for p in (1, 5)}  # those docs/analysis.md names
    before = tune(choices, peaks(choices, time), time, panel, fold.train, 0.1)
    changed = {key: np.where(fold.test[:, None], 99.0, level) for key, level in choices.items()}
    assert tune(changed, peaks(changed, time), time, panel, fold.train, 0.1) == before
    assert tune(choices, peaks(choices, time), time, panel, fold.train & panel.failed, 0.1) is None


def test_a_larger_target_never_catches_fewer_training_losses(panel) -> None:
    runs = cross_fitted(panel, clock(panel), "ess", folds(panel, "seed"), (0.02, 0.1, 0.5))
    caught = [[tuned.train_caught for _, tuned in settings] for _, _, settings in runs]
    assert np.all(np.diff(caught, axis=0) >= 0)


def test_tables_list_every_miss_and_every_false_alarm(panel) -> None:
    tables = alarm_tables(panel)
    for row in tables.episodes.to_dict("records"):
        missed = (tables.misses["signal"] == row["signal"]).sum()
        assert missed == row["n_collapsed"] - round(row["recall"] * row["n_collapsed"])
        assert missed == row["late"] + row["early"] + row["never"]
        wrong = tables.false_alarms[
            (tables.false_alarms["signal"] == row["signal"]) & np.isinf(tables.false_alarms["onset"])
        ]
        assert len(wrong) == row["stopped_wrongly"] == round(row["healthy_alarmed"] * row["n_healthy"])
    curve = tables.operating[tables.operating["signal"] == "ess"]
    assert list(curve["target"]) == sorted(curve["target"])
    assert curve["healthy_alarmed"].iloc[-1] >= curve["healthy_alarmed"].iloc[0]
    assert set(tables.generalization["split"]) == {"seed", "staleness", "method"}
    seeds = tables.generalization[tables.generalization["split"] == "seed"]
    assert (seeds["drop"] == 0).all()
    assert set(tables.thresholds["split"]) == {"seed", "staleness", "method"}


def test_detectors_are_exported_with_their_measured_rates(panel, tmp_path) -> None:
    tables = alarm_tables(panel)
    path = tmp_path / "detectors.json"
    path.write_text(detectors_json(panel, tables.episodes, "synthetic"))
    first = load_calibrations(path)[0]
    row = tables.episodes[tables.episodes["signal"] == "ess"].iloc[0]
    assert first.detector.signal == "ess"  # it leads; the other is a clock
    assert first.false_alarms.value == row["false_per_1000"]
    assert (first.n_collapsed, first.n_healthy) == (row["n_collapsed"], row["n_healthy"])
    alarms = first.detector.alarms(panel.values["ess"][np.flatnonzero(panel.healthy)[0]])
    assert alarms.shape == (300,)
    assert all(np.isfinite(entry["threshold"]) for entry in json.loads(path.read_text()))


def test_alarms_close_together_are_one_episode() -> None:
    alarms = np.zeros(30, dtype=bool)
    alarms[[0, 3, 8, 20, 21]] = True
    assert episodes(alarms, refractory=5) == [AlarmEpisode(0, 8), AlarmEpisode(20, 21)]
    assert episodes(alarms, refractory=4) == [AlarmEpisode(0, 3), AlarmEpisode(8, 8), AlarmEpisode(20, 21)]
    assert episodes(alarms, refractory=0) == [AlarmEpisode(i, i) for i in (0, 3, 8, 20, 21)]
    assert episodes(np.zeros(4, dtype=bool), refractory=5) == []
