"""What the reward says of a run."""

from dataclasses import FrozenInstanceError
from pathlib import Path

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


@pytest.mark.parametrize(("count", "verdict"), [(39, "cannot tell"), (40, "stall")])
def test_the_rule_judges_from_four_points_on(tmp_path: Path, count: int, verdict: str) -> None:
    assert of_rewards(tmp_path, [0.5] * count).verdict == verdict


def test_what_is_missing_comes_with_the_setting_that_logs_it_where_the_framework_is_known(tmp_path: Path) -> None:
    known = {one.column: one.switch for one in of_rewards(tmp_path, [0.5]).unseen}
    assert "trainer.v1" in known["lag_mean"]
    log = read_run(write_jsonl(tmp_path / "own.jsonl", [{"score": 0.5}]), mapping={"reward": "score"})
    assert {one.switch for one in diagnose(log).unseen} == {""}


def test_what_was_found_cannot_be_changed(tmp_path: Path) -> None:
    found = of_rewards(tmp_path, [0.5])
    with pytest.raises(FrozenInstanceError):
        found.outcome.verdict = "healthy"  # type: ignore[misc]
