"""Detectors on a foreign log raise the alarms they would raise online, on the exact quantity only."""

from pathlib import Path

import numpy as np
import pytest
from foreign_runs import PLANTED, planted, rows_of, write_jsonl

from vcpo_bench.analysis.log_alarms import AlarmReport, find_alarms
from vcpo_bench.analysis.log_alarms.updates import lengths_at, reward_range
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.monitoring.alarm_panel import AlarmPanel
from vcpo_bench.analysis.monitoring.calibration import Calibration, Rate, RewardRange, load_calibrations
from vcpo_bench.analysis.monitoring.detectors import Detector


def known(signal: str, threshold: float, window: int = 1, **more: object) -> Calibration:
    rate = Rate(0.5, 0.25, 1.0)
    return Calibration(Detector(signal, window, threshold), rate, rate, 20.0, "a study", 20, 40, **more)  # type: ignore[arg-type]


def report(folder: Path, framework: str, *calibrations: Calibration, cause: str = "lag and weights") -> AlarmReport:
    return find_alarms(read_run(write_jsonl(folder / "log.jsonl", rows_of(planted(cause), framework))), calibrations)


def test_an_alarm_is_told_once_with_its_step_and_where_its_rate_was_measured(tmp_path: Path) -> None:
    found = report(tmp_path, "vcpo-fork", known("ess", 1.0))
    (alarm,) = found.alarms
    assert alarm.step == PLANTED
    assert str(alarm).startswith("ess 2.")
    assert "at step 120; false alarms per 1,000 healthy updates: 0.5 [0.25, 1] (measured on a study" in str(alarm)
    assert str(alarm).endswith("not known here")
    assert report(tmp_path, "vcpo-fork", known("ess", 1.0), cause="healthy").alarms == ()


def test_the_alarms_are_those_of_the_monitor(tmp_path: Path) -> None:
    one = known("kl", 0.03, window=5)
    run = read_run(write_jsonl(tmp_path / "log.jsonl", rows_of(planted("lag and weights"), "vcpo-fork")))
    panel = AlarmPanel([one])
    spoken = [bool(panel.feed({"kl_mu_theta_k3": value})) for value in run.series["kl_mu_theta_k3"].values]
    (alarm,) = find_alarms(run, [one]).alarms
    assert alarm.step == spoken.index(True)


def test_what_only_resembles_the_quantity_is_not_used(tmp_path: Path) -> None:
    logged = [
        {"step": t, "critic/score/mean": 0.5, "rollout_corr/rollout_is_max": 3.0 + t, "actor/pg_loss": 0.0}
        for t in range(60)
    ]
    run = read_run(write_jsonl(tmp_path / "log.jsonl", logged))
    found = find_alarms(run, [known("max_weight", 1.2)])
    assert not found.alarms
    assert found.silent == {"max_weight": "rollout_corr/rollout_is_max is not the exact quantity (truncated)"}
    tuned_here = known("max_weight", 1.2, inputs={"log_weight_max": "rollout_corr/rollout_is_max"})
    assert [one.step for one in find_alarms(run, [tuned_here]).alarms] == [1.0]
    elsewhere = known("max_weight", 1.2, inputs={"log_weight_max": "ratio_max"})
    assert find_alarms(run, [elsewhere]).silent["max_weight"].startswith("it was tuned on ratio_max, this log has")


def test_rewards_on_another_scale_are_not_compared(tmp_path: Path) -> None:
    logged = [{"step": t, "reward": 8.0 - t / 10, "frac_reward_zero_std": 0.0} for t in range(60)]
    run = read_run(write_jsonl(tmp_path / "log.jsonl", logged))
    assert "rewards from 0 to 1" in find_alarms(run, [known("reward_drop", 0.1, reward="unit")]).silent["reward_drop"]
    assert find_alarms(run, [known("reward_drop", 0.1, reward="any")]).alarms


def long_run(folder: Path, lengths: np.ndarray, kl: float) -> AlarmReport:
    """A healthy run of verl whose only gap is that between engine and trainer, and the packaged `kl_length`."""
    logged = [
        {
            "critic/score/mean": 0.5,
            "rollout_corr/k3_kl": kl,
            "response_length/mean": float(length),
            "actor/pg_loss": 0.0,
        }
        for length in lengths
    ]
    run = read_run(write_jsonl(folder / "log.jsonl", logged))
    return find_alarms(run, [one for one in load_calibrations() if one.detector.signal == "kl_length"])


def test_a_normal_gap_over_long_responses_is_no_alarm(tmp_path: Path) -> None:
    found = long_run(tmp_path, np.full(60, 9000), 0.0009)
    assert found.alarms == ()
    assert found.silent == {"kl_length": "responses of 9,000 tokens, tuned on 4 to 24"}


def test_short_responses_are_heard(tmp_path: Path) -> None:
    found = long_run(tmp_path, np.full(60, 59), 0.2)
    assert ([one.step for one in found.alarms], found.silent) == ([0.0], {})


def test_an_alarm_before_responses_became_too_long_stays(tmp_path: Path) -> None:
    found = long_run(tmp_path, np.where(np.arange(60) < 30, 1000, 4000), 0.006)
    assert [one.step for one in found.alarms] == [0.0]
    assert found.silent == {"kl_length": "responses of 4,000 tokens, tuned on 4 to 24"}


def test_the_length_with_the_prompt_is_no_length_of_a_response(tmp_path: Path) -> None:
    line = "Step {0} | Time: 9.00s | Reward: 0.5000 | Seq. Length: 9000.0 tokens/sample | Async Level: 1"
    (tmp_path / "log.txt").write_text("\n".join(line.format(step) for step in range(40)))
    run = read_run(tmp_path / "log.txt", "prime-rl")
    assert "length_mean" in run.series
    assert np.isnan(lengths_at(run, np.arange(40.0))).all()


@pytest.mark.parametrize(("values", "expected"), [([0, 1], "unit"), ([-1, 0.5], "signed"), ([0, 3], "any")])
def test_the_range_of_rewards(values: list[float], expected: RewardRange) -> None:
    assert reward_range(np.array(values, dtype=float)) == expected


def test_a_log_with_one_row_per_ten_updates_says_what_that_means(tmp_path: Path) -> None:
    logged = [{"step": 10 * t, "reward": 0.5, "frac_reward_zero_std": 0.0} for t in range(60)]
    run = read_run(write_jsonl(tmp_path / "log.jsonl", logged))
    (note,) = find_alarms(run, [known("reward_drop", 0.1)]).notes
    assert note.startswith("The log has one row per 10 optimizer updates")
