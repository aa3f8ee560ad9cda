"""Causes planted in synthetic runs are found, in whatever names the run was logged under."""

from pathlib import Path

import numpy as np
import pytest
from foreign_runs import NAMES, ONSET, PLANTED, STEPS, planted, rows_of, write_jsonl

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose, read_run

FIVE = ("verl", "trl", "prime-rl", "areal", "skyrl")


def diagnosed(folder: Path, cause: str, framework: str) -> Diagnosis:
    return diagnose(read_run(write_jsonl(folder / "log.jsonl", rows_of(planted(cause), framework))))


def probable(found: Diagnosis) -> list[str]:
    return [cause.name for cause in found.causes if cause.standing == "probable"]


@pytest.mark.parametrize(
    ("cause", "framework"),
    [
        ("lag and weights", "vcpo-fork"),
        ("engine gap", "verl"),
        ("truncation and length", "verl"),
        ("entropy", "verl"),
        ("zero-variance groups", "trl"),
        ("gradient or non-finite", "verl"),
    ],
)
def test_a_planted_cause_comes_first(cause: str, framework: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, cause, framework)
    assert found.verdict == "collapsed"
    assert ONSET - 10 <= found.onset <= ONSET + 20
    assert probable(found) == [cause]
    first = found.causes[0]
    assert PLANTED - 3 <= first.since <= PLANTED + 20
    assert first.evidence
    assert found.departures[0].step >= PLANTED - 3


def test_a_run_whose_reward_is_lost_to_nan_fell_at_the_first_lost_value(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "gradient or non-finite", "slime")
    assert found.verdict == "collapsed"
    assert found.onset == ONSET
    assert "not finite from step 140" in found.outcome.reason


def test_a_healthy_run_has_no_probable_cause(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "healthy", "vcpo-fork")
    assert found.verdict == "healthy"
    assert np.isnan(found.onset)
    assert not found.departures
    assert not probable(found)


@pytest.mark.parametrize("cause", ["lag and weights", "truncation and length", "entropy"])
def test_the_same_run_under_five_names_gives_the_same_answer(cause: str, tmp_path: Path) -> None:
    answers = []
    for framework in FIVE:
        found = diagnosed(tmp_path, cause, framework)
        assert found.run.framework == framework
        answers.append((found.verdict, found.onset, probable(found)))
    assert answers[0][0] == "collapsed"
    assert answers[0][2] == [cause]
    assert all(answer == answers[0] for answer in answers), dict(zip(FIVE, answers, strict=True))


def test_a_silent_anchor_is_named_and_a_verdict_is_not_drawn_from_it(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "silent anchor", "verl")
    assert found.verdict == "healthy"
    (anchor,) = [cause for cause in found.causes if cause.name == "silent anchor"]
    assert any("clipping could not act" in sentence for sentence in anchor.evidence)


def test_groups_that_never_had_variance_are_named_where_the_log_has_the_share_of_the_others(tmp_path: Path) -> None:
    facts = {"env/all/reward/total": 0.02, "optim/entropy": 0.4, "env/all/by_group/frac_mixed": 0.0}
    found = diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", [facts] * 60)))
    (cause,) = [one for one in found.causes if one.name == "zero-variance groups"]
    assert "above 80% from step 0" in cause.evidence[0]


def test_a_resume_with_a_jump(tmp_path: Path) -> None:
    run = planted("healthy")
    run["reward"] = np.where(np.arange(STEPS) < PLANTED, run["reward"], 0.02)
    run["grad_norm"] = np.where(np.arange(STEPS) < PLANTED, run["grad_norm"], 6.0)
    rows = rows_of(run, "openrlhf")
    path = write_jsonl(tmp_path / "log.jsonl", rows[: PLANTED + 8])
    with path.open("a") as file:
        file.write(write_jsonl(tmp_path / "more.jsonl", rows[PLANTED:], PLANTED).read_text())
    (tmp_path / "more.jsonl").unlink()
    found = diagnose(read_run(tmp_path))
    assert found.verdict == "collapsed"
    assert found.causes[0].name == "resume jump"
    assert found.causes[0].since == PLANTED
    assert found.run.overwritten > 0
    assert len(found.run.resumes) == 1


@pytest.mark.parametrize(("at", "seen"), [(3, False), (4, True), (STEPS - 4, True), (STEPS - 3, False)])
def test_a_jump_is_seen_from_four_updates_on_each_side(tmp_path: Path, at: int, seen: bool) -> None:
    run = planted("healthy")
    run["grad_norm"] = np.where(np.arange(STEPS) < at, 0.5, 6.0)
    rows = rows_of(run, "openrlhf")
    first = write_jsonl(tmp_path / "a.jsonl", rows[: at + 2])
    found = diagnose(read_run([first, write_jsonl(tmp_path / "b.jsonl", rows[at:], at)]))
    assert ("resume jump" in [cause.name for cause in found.causes]) == seen


def test_a_resume_without_a_jump_is_no_cause(tmp_path: Path) -> None:
    rows = rows_of(planted("healthy"), "openrlhf")
    write_jsonl(tmp_path / "a.jsonl", rows[:130])
    write_jsonl(tmp_path / "b.jsonl", rows[120:], 120)
    found = diagnose(read_run([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]))
    assert found.verdict == "healthy"
    assert [(one.step, one.back_from) for one in found.run.resumes] == [(120.0, 129.0)]
    assert "resume jump" not in [cause.name for cause in found.causes]


def test_training_that_rises_while_evaluation_falls(tmp_path: Path) -> None:
    run = planted("healthy")
    t = np.arange(STEPS)
    run["eval_reward"] = np.where(t < ONSET, run["eval_reward"], 0.5 * np.exp(-(t - ONSET) / 40))
    found = diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows_of(run, "verl"))))
    assert found.verdict == "collapsed"
    assert found.outcome.column == "eval_reward"
    assert "train/eval gap" in [cause.name for cause in found.causes]


def test_lost_support_is_not_health(tmp_path: Path) -> None:
    """Numbers of a public verl run whose engine served other weights, graded "PASS" while its reward rose to 0.80."""
    steps = 117
    t = np.arange(steps)
    share = np.clip((t - 20) / 10, 0, 1)
    run = {
        "critic/score/mean": 0.3 + 0.5 * t / steps,
        "training/rollout_probs_diff_mean": 0.003 + share * 0.807,
        "training/rollout_actor_probs_pearson_corr": 0.99 - share * 0.94,
        "rollout_corr/k3_kl": 0.001 + share * 15.3,
        "rollout_corr/chi2_seq": 0.05 - share * 1.0,
        "actor/ppo_kl": np.full(steps, 0.001),
    }
    rows = [{name: float(values[step]) for name, values in run.items()} for step in range(steps)]
    found = diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows)))
    assert found.verdict == "cannot tell"
    assert "no support" in found.outcome.reason
    assert found.causes[0].name == "lost support"
    assert found.causes[0].standing == "probable"
    assert any("not health" in sentence for sentence in found.causes[0].evidence)
    assert not any("chi2" in sentence for cause in found.causes for sentence in cause.against)


def test_lost_support_in_a_run_that_fell(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "lost support", "verl")
    assert found.verdict == "collapsed"
    assert found.causes[0].name == "lost support"


@pytest.mark.parametrize("framework", sorted(NAMES))
def test_every_framework_is_recognized_and_judged(framework: str, tmp_path: Path) -> None:
    found = diagnosed(tmp_path, "entropy", framework)
    assert found.run.framework == framework
    assert found.verdict == "collapsed"
    assert found.causes[0].name == "entropy"
    assert set(found.run.series) == set(NAMES[framework])


@pytest.mark.parametrize("seed", range(4))
def test_an_entropy_that_drifts_begins_to_fall_where_it_breaks(tmp_path: Path, seed: int) -> None:
    run, rng, t = planted("healthy"), np.random.default_rng(seed), np.arange(STEPS)
    noise = rng.normal(0, 0.02, STEPS)
    for at in range(1, STEPS):
        noise[at] += 0.95 * noise[at - 1]
    run["entropy"] = np.exp(-0.8 * t / PLANTED - np.clip((t - PLANTED) / 15, 0, 4) + noise)
    run["reward"] = np.where(t < ONSET, run["reward"], 0.02)
    found = diagnose(read_run(write_jsonl(tmp_path / "log.jsonl", rows_of(run, "verl"))))
    (entropy,) = [one for one in found.causes if one.name == "entropy"]
    assert PLANTED - 20 <= entropy.since <= PLANTED + 20
