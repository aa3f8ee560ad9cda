"""A log that went back was resumed: what lay beyond belongs to a run that was given up."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from foreign_runs import write_jsonl

from vcpo_bench.analysis.diagnosis import diagnose
from vcpo_bench.analysis.logs import LoggedRun, read_run
from vcpo_bench.errors import UsageError

REWARD, EVALUATION, LOSS = "critic/score/mean", "val-core/gsm8k/acc/mean@1", "actor/pg_loss"


def log_of(folder: Path, rows: list[dict[str, float]]) -> LoggedRun:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(path)


def updates(begin: int, end: int, reward: float) -> list[dict[str, float]]:
    return [{"step": step, REWARD: reward, LOSS: 0.1} for step in range(begin, end)]


def test_the_tail_of_a_run_that_was_given_up_does_not_decide_the_verdict(tmp_path: Path) -> None:
    rising = [{"step": step, REWARD: 0.2 + step / 300, LOSS: 0.1} for step in range(110)]
    lost = updates(110, 180, 0.0)
    assert diagnose(log_of(tmp_path, rising + lost)).verdict == "collapsed"
    run = log_of(tmp_path, rising + lost + updates(100, 140, 0.6))
    assert diagnose(run).verdict == "healthy"
    assert run.last_step == 139
    assert [(one.step, one.back_from) for one in run.resumes] == [(100, 179)]
    assert run.overwritten == 2 * 80


def test_evaluations_that_were_not_repeated_yet_go_with_it(tmp_path: Path) -> None:
    evaluations = [{"step": step, EVALUATION: 0.9 if step < 100 else 0.0} for step in range(0, 180, 10)]
    rows = sorted(updates(0, 180, 0.5) + evaluations, key=lambda row: row["step"])
    run = log_of(tmp_path, rows + updates(95, 99, 0.5))
    assert run.series["eval_reward"].steps.tolist() == list(range(0, 91, 10))
    assert run.last_step == 98


@pytest.mark.parametrize("order", [(4, 10), (10, 4)])
def test_evaluations_that_come_late_and_in_any_order_are_no_resume(tmp_path: Path, order: tuple[int, int]) -> None:
    rows = updates(0, 20, 0.5)
    rows[13:13] = [{"step": step, EVALUATION: step / 10} for step in order]
    run = log_of(tmp_path, rows)
    assert run.series["reward"].steps.tolist() == list(range(20))
    assert run.series["eval_reward"].steps.tolist() == [4, 10]
    assert run.series["eval_reward"].values.tolist() == [0.4, 1.0]
    assert not run.resumes


def test_a_row_of_unknown_names_does_not_hide_a_resume(tmp_path: Path) -> None:
    run = log_of(tmp_path, [*updates(0, 20, 0.5), {"step": 9, "note": 1.0}, *updates(10, 12, 0.5)])
    assert run.last_step == 11
    assert [one.step for one in run.resumes] == [10]


def test_only_names_with_the_same_step_go_back(tmp_path: Path) -> None:
    rollouts = [{"rollout/step": step, "rollout/raw_reward": 0.5} for step in range(10)]
    others = [{"train/step": step, "train/pg_clipfrac": 0.1} for step in range(10)]
    run = log_of(tmp_path, [*rollouts, *others, {"rollout/step": 5, "rollout/raw_reward": 0.4}])
    assert run.series["reward"].steps.tolist() == list(range(6))
    assert run.series["share_clipped"].steps.tolist() == list(range(10))


def test_of_several_logs_each_ends_where_the_next_begins(tmp_path: Path) -> None:
    first = [row | ({EVALUATION: 0.9} if row["step"] % 10 == 0 else {}) for row in updates(0, 60, 0.5)]
    write_jsonl(tmp_path / "a.jsonl", first)
    write_jsonl(tmp_path / "b.jsonl", updates(35, 45, 0.5), first=35)
    run = read_run([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert run.series["reward"].steps.tolist() == list(range(45))
    assert run.series["eval_reward"].steps.tolist() == [0, 10, 20, 30]
    assert [(one.step, one.back_from) for one in run.resumes] == [(35, 59)]


def test_two_logs_of_one_run_that_share_a_clock_are_no_resume(tmp_path: Path) -> None:
    rewards, signals = tmp_path / "orchestrator.jsonl", tmp_path / "trainer.jsonl"
    write_jsonl(rewards, [{"train/agg/all/math/reward/mean": 0.5, "off_policy/mean": 1.0, "time/step": 9.0}] * 8)
    write_jsonl(signals, [{"mismatch_kl/all/mean": 0.01, "entropy/all/mean": 0.5, "time/step": 7.0}] * 8)
    run = read_run([rewards, signals])
    assert run.series["reward"].steps.size == run.series["kl_mu_theta_k3"].steps.size == 8
    assert not run.resumes


def prime_rl(process: str, step: int, reward: float = 0.5) -> dict[str, float]:
    if process == "orchestrator":
        return {"step": step, "train/agg/all/math/reward/mean": reward, "off_policy/mean": 1.0, "time/step": 9.0}
    return {"step": step, "mismatch_kl/all/mean": 0.01, "entropy/all/mean": 0.5, "time/step": 7.0}


def test_two_processes_that_share_a_file_are_resumed_together(tmp_path: Path) -> None:
    def both(begin: int, end: int) -> list[dict[str, float]]:
        """The trainer two steps behind."""
        ahead = [(2 * step, prime_rl("orchestrator", step)) for step in range(begin, end)]
        behind = [(2 * step + 5, prime_rl("trainer", step)) for step in range(begin, end - 2)]
        return [row for _, row in sorted(ahead + behind, key=lambda one: one[0])]

    run = log_of(tmp_path, [*both(0, 30), *both(20, 40)])
    assert [(one.step, one.back_from) for one in run.resumes] == [(20, 29)]
    assert run.series["reward"].steps.tolist() == list(range(40))
    assert run.series["kl_mu_theta_k3"].steps.tolist() == list(range(38))


def test_a_log_of_which_only_the_clock_is_known_is_no_resume(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [prime_rl("orchestrator", step) for step in range(8)])
    write_jsonl(tmp_path / "b.jsonl", [{"time/step": 7.0}] * 3)
    run = read_run(tmp_path)
    assert run.series["reward"].steps.size == 8
    assert not run.resumes


def test_logs_of_two_folders_that_share_a_clock_are_two_runs_unless_they_name_its_processes(tmp_path: Path) -> None:
    for one, other, runs in (("orchestrator", "trainer", 1), ("first", "second", 2)):
        root = tmp_path / one
        for place, process in ((root / one, "orchestrator"), (root / other, "trainer")):
            place.mkdir(parents=True)
            write_jsonl(place / "metrics.jsonl", [prime_rl(process, step) for step in range(8)])
        if runs == 1:
            assert read_run(root).series["reward"].steps.size == 8
        else:
            with pytest.raises(UsageError, match="holds 2 runs"):
                read_run(root)


def test_logs_that_share_a_reward_are_two_runs_whatever_else_they_hold(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{REWARD: 0.5, LOSS: 0.1}] * 8)
    write_jsonl(tmp_path / "b.jsonl", [{REWARD: 0.5, "actor/entropy": 0.1, "actor/grad_norm": 0.1}] * 8)
    with pytest.raises(UsageError, match="holds 2 runs"):
        read_run(tmp_path)


@pytest.mark.parametrize("resumed", [False, True])
def test_an_mlflow_database_is_read_in_the_order_of_writing(tmp_path: Path, resumed: bool) -> None:
    file = tmp_path / "mlflow.db"
    written = [(step, name) for step in range(20) for name in (REWARD, LOSS, EVALUATION)]
    written += [(step, REWARD) for step in range(10, 13)] if resumed else []
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN)"
        )
        for time, (step, name) in enumerate(written):
            database.execute("INSERT INTO metrics VALUES (?, 0.5, ?, 'r', ?, 0)", (name, time, step))
        database.commit()
    run = read_run(file)
    assert run.series["eval_reward"].steps.tolist() == list(range(10 if resumed else 20))
    assert run.last_step == (12 if resumed else 19)
    assert len(run.resumes) == resumed
