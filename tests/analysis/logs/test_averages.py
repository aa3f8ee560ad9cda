"""Several evaluation sets are one curve only where it is the mean of the same sets at every step."""

from pathlib import Path

import numpy as np
import pytest
from foreign_runs import write_jsonl

from vcpo_bench.analysis.diagnosis import diagnose
from vcpo_bench.analysis.logs import LoggedRun, read_run
from vcpo_bench.analysis.logs.averages import average

EASY, HARD, NEW = (f"val-core/{name}/acc/mean@1" for name in ("gsm8k", "aime", "hmmt"))


def run_with(folder: Path, sets: dict[str, tuple[float, range]], rows: int = 20) -> LoggedRun:
    """A run whose sets have a constant reward at some of its steps."""
    logged = [
        {"critic/score/mean": 0.8, "actor/pg_loss": 0.1}
        | {name: value for name, (value, steps) in sets.items() if step in steps}
        for step in range(rows)
    ]
    return read_run(write_jsonl(folder / "log.jsonl", logged))


def test_a_set_that_is_added_is_left_out_and_no_fall(tmp_path: Path) -> None:
    run = run_with(tmp_path, {EASY: (0.9, range(20)), HARD: (0.02, range(10, 20)), NEW: (0.02, range(12, 20))})
    assert run.series["eval_reward"].values.tolist() == [0.9] * 20
    assert run.series["eval_reward"].logged_as == (EASY,)
    assert diagnose(run).verdict != "collapsed"
    assert f"eval_reward leaves out {HARD}, {NEW}: not logged at each of its steps" in run.notes
    assert {HARD, NEW} <= set(run.unused)


def test_a_set_that_is_dropped_is_left_out(tmp_path: Path) -> None:
    run = run_with(tmp_path, {EASY: (0.9, range(10)), HARD: (0.2, range(20)), NEW: (0.4, range(20))})
    assert run.series["eval_reward"].values == pytest.approx([0.3] * 20)
    assert f"eval_reward is the mean of 2 names: {HARD}, {NEW}" in run.notes


def test_where_no_set_is_always_there_only_steps_with_all_of_them_count(tmp_path: Path) -> None:
    run = run_with(tmp_path, {EASY: (0.9, range(0, 20, 2)), HARD: (0.1, range(0, 20, 3))})
    assert run.series["eval_reward"].steps.tolist() == [0, 6, 12, 18]
    assert run.series["eval_reward"].values.tolist() == [0.5] * 4
    assert any("leaves out 9 of 13 steps" in note for note in run.notes)


def test_of_sets_that_never_meet_the_one_logged_most_often_counts(tmp_path: Path) -> None:
    run = run_with(tmp_path, {EASY: (0.9, range(8)), HARD: (0.1, range(8, 20))})
    assert run.series["eval_reward"].steps.tolist() == list(range(8, 20))
    assert run.series["eval_reward"].logged_as == (HARD,)


def test_a_newest_step_that_is_half_written_is_waited_for(tmp_path: Path) -> None:
    run = run_with(tmp_path, {EASY: (0.9, range(20)), HARD: (0.1, range(19))})
    assert run.series["eval_reward"].steps.tolist() == list(range(19))
    assert run.series["eval_reward"].values.tolist() == [0.5] * 19
    run = run_with(tmp_path, {EASY: (0.9, range(1)), HARD: (0.1, range(1))}, rows=1)
    assert run.series["eval_reward"].values.tolist() == [0.5]


def test_a_value_that_is_not_finite_was_logged() -> None:
    steps = np.arange(3.0)
    mean = average("reward", {"a": (steps, np.array([1.0, np.nan, 1.0])), "b": (steps, np.zeros(3))})
    assert mean.names == ("a", "b")
    assert mean.values == pytest.approx([0.5, np.nan, 0.5], nan_ok=True)
