"""What the reward says of a run."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from foreign_runs import write_jsonl

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose, read_run


def of_rewards(folder: Path, rewards: list[float]) -> Diagnosis:
    rows = [{"training/global_step": step, "critic/score/mean": reward} for step, reward in enumerate(rewards, 1)]
    return diagnose(read_run(write_jsonl(folder / "log.jsonl", rows)))


@pytest.mark.parametrize(("count", "points"), [(1, "1 point"), (2, "no points of 10 updates")])
def test_a_run_of_one_or_two_updates_is_too_short_to_judge(tmp_path: Path, count: int, points: str) -> None:
    found = of_rewards(tmp_path, [0.5] * count)
    assert found.verdict == "cannot tell"
    assert f"training reward: {points}, fewer than the 4 the rule needs" in found.outcome.reason


def test_steps_that_lie_too_close_to_count_judge_nothing(tmp_path: Path) -> None:
    rows = [{"training/global_step": k * 1e-320, "critic/score/mean": k % 7, "actor/entropy": k} for k in range(60)]
    assert diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows))).verdict == "cannot tell"


@pytest.mark.parametrize(("count", "verdict"), [(39, "cannot tell"), (40, "stall")])
def test_the_rule_judges_from_four_points_on(tmp_path: Path, count: int, verdict: str) -> None:
    assert of_rewards(tmp_path, [0.5] * count).verdict == verdict


@pytest.mark.parametrize("floor", [0.0, -0.02, -0.2, -0.49])
def test_a_fall_to_a_small_penalty_is_a_fall(tmp_path: Path, floor: float) -> None:
    found = of_rewards(tmp_path, [*np.linspace(0.1, 0.6, 100), *[floor] * 100])
    assert found.verdict == "collapsed"
    assert ("was counted as 0" in found.outcome.reason) == (floor < 0)


def test_a_penalty_at_the_start_hides_no_fall(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, [*[-0.05] * 10, *[0.5] * 90, *[0.01] * 100])
    assert found.verdict == "collapsed"
    assert "Reward below 0, down to -0.05, was counted as 0." in found.outcome.reason


def test_reward_that_uses_the_lower_half_is_between_minus_one_and_one(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, [*np.linspace(-0.6, 0.6, 100), *[0.1] * 100])
    assert found.verdict == "healthy"  # an accuracy that goes from 80% to 55%
    assert "between -1 and 1 was moved" in found.outcome.reason
    assert of_rewards(tmp_path, [*np.linspace(-0.6, 0.6, 100), *[-0.5] * 100]).verdict == "collapsed"


def test_what_is_missing_comes_with_the_setting_that_logs_it_where_the_framework_is_known(tmp_path: Path) -> None:
    known = {one.column: one.switch for one in of_rewards(tmp_path, [0.5]).unseen}
    assert "trainer.use_v1=True" in known["lag_mean"]
    log = read_run(write_jsonl(tmp_path / "own.jsonl", [{"score": 0.5}]), mapping={"reward": "score"})
    assert {one.switch for one in diagnose(log).unseen} == {""}


def test_what_was_found_cannot_be_changed(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, [0.5])
    with pytest.raises(FrozenInstanceError):
        found.outcome.verdict = "healthy"  # type: ignore[misc]


def test_a_long_decline_that_ends_just_below_half_is_called_and_a_drop_at_the_end_is_not(tmp_path: Path) -> None:
    slow = of_rewards(tmp_path, [*[0.6] * 80, *np.linspace(0.6, 0.26, 120)])
    assert slow.verdict == "declining"
    assert of_rewards(tmp_path, [*[0.6] * 185, *np.linspace(0.2, 0.29, 15)]).verdict == "cannot tell"


def test_a_fall_at_the_end_of_a_short_log_is_seen(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, [*np.linspace(0.5, 0.7, 42), *[0.02] * 20])
    assert found.verdict == "collapsed"
    assert found.onset == pytest.approx(43, abs=found.outcome.resolution)


@pytest.mark.parametrize(("scores_lose", "verdict"), [(0.45, "declining"), (0.0, "healthy")])
def test_a_decline_between_sparse_evaluations_is_seen_where_they_agree(
    tmp_path: Path, scores_lose: float, verdict: str
) -> None:
    t, rng = np.arange(240), np.random.default_rng(4)
    lost, grown = np.clip((t - 160) / 80, 0, 1), 0.3 + 0.3 * np.clip(t / 120, 0, 1)
    reward, score = (grown * (1 - share * lost) + rng.normal(0, 0.02, 240) for share in (0.45, scores_lose))
    rows = [{"training/global_step": step, "critic/score/mean": one} for step, one in enumerate(reward)]
    for step in range(0, 240, 20):
        rows[step]["val-core/gsm8k/acc/mean@1"] = score[step]
    outcome = diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows))).outcome
    assert (outcome.verdict, outcome.column) == (verdict, "reward" if scores_lose else "eval_reward")
    assert ("The evaluations, 12 points, fell with it" in outcome.reason) == (scores_lose > 0)


def test_evaluations_that_never_rose_do_not_agree_with_a_fall(tmp_path: Path) -> None:
    reward = [*np.linspace(0.3, 0.6, 80), *np.linspace(0.6, 0.3, 160)]
    rows = [{"training/global_step": step, "critic/score/mean": one} for step, one in enumerate(reward)]
    for step in range(0, 240, 20):
        rows[step]["val-core/gsm8k/acc/mean@1"] = 0.0
    assert "fell with it" not in diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows))).outcome.reason


def test_a_run_that_recovered_once_can_still_collapse(tmp_path: Path) -> None:
    level = np.interp(np.arange(300), [0, 60, 90, 120, 150, 180, 300], [0.3, 0.6, 0.25, 0.55, 0.55, 0.2, 0.2])
    found = of_rewards(tmp_path, [*(level + np.random.default_rng(0).normal(0, 0.02, 300))])
    assert found.verdict == "collapsed"
