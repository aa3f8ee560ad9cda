"""One log for each kind of mistake that a reader of logs can make, with what is true of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.diagnosis import Diagnosis, diagnose
from vcpo_bench.analysis.logs import read_run
from vcpo_bench.reports.terminal.diagnosis import diagnosis_text

Row = dict[str, float]
RNG = np.random.default_rng(7)


def noisy(values: np.ndarray, spread: float = 0.02) -> np.ndarray:
    return values + RNG.normal(0, spread, values.size)


def verl(folder: Path, **columns: np.ndarray) -> Diagnosis:
    """A run of verl's file logger; columns by our short names."""
    names = {
        "reward": "critic/score/mean",
        "entropy": "actor/entropy",
        "loss": "actor/pg_loss",
        "norm": "actor/grad_norm",
        "gap": "training/rollout_probs_diff_mean",
        "length": "response_length/mean",
        "cut": "response_length/clip_ratio",
        "lag": "training/off_policy/trajectory_staleness/mean",
        "clipped": "actor/pg_clipfrac",
    }
    size = len(next(iter(columns.values())))
    rows = [{names[name]: float(values[t]) for name, values in columns.items()} for t in range(size)]
    lines = [json.dumps({"step": t + 1, "data": row}) for t, row in enumerate(rows)]
    return read(folder / "metrics.jsonl", "\n".join(lines))


def trl(folder: Path, rows: list[Row], every: int = 1) -> Diagnosis:
    history = [{"step": (t + 1) * every, **row} for t, row in enumerate(rows)]
    return read(folder / "trainer_state.json", json.dumps({"logging_steps": every, "log_history": history}))


def read(path: Path, text: str) -> Diagnosis:
    path.write_text(text)
    return diagnose(read_run(path))


def probable(found: Diagnosis) -> list[str]:
    return [one.name for one in found.causes if one.standing == "probable"]


T = np.arange(200)


def test_rows_of_a_console_are_of_the_updates_its_progress_bar_shows(tmp_path: Path) -> None:
    lines = []
    for row in range(30):
        update = 10 * (row + 1)
        reward = 0.8 if update < 220 else 0.0
        lines += [f"{update // 3:3d}%|###       | {update}/300 [01:00<29:00,  6.02s/it]"]
        lines += [f"{{'loss': 0.01, 'reward': {reward}, 'frac_reward_zero_std': 0.1, 'epoch': 0.1}}"]
    found = read(tmp_path / "train.log", "\n".join(lines))
    assert (found.verdict, found.onset) == ("collapsed", 220)


def test_a_row_without_a_bar_of_its_own_is_one_spacing_later(tmp_path: Path) -> None:
    bars = ["10%|#  | 10/100 [01:00<09:00,  6.02s/it]", "20%|##  | 20/100 [02:00<08:00,  6.02s/it]"]
    rows = [f"{{'loss': 0.01, 'reward': 0.{t}, 'frac_reward_zero_std': 0.1}}" for t in range(1, 4)]
    path = tmp_path / "train.log"
    path.write_text("\n".join([bars[0], rows[0], bars[1], rows[1], rows[2]]))
    assert read_run(path).series["reward"].steps.tolist() == [10, 20, 30]


def test_a_cause_can_begin_in_the_third_row(tmp_path: Path) -> None:
    entropy = np.concatenate([[0.2, 0.21, 0.7, 2.3, 4.9], np.full(45, 5.1)])
    reward = np.concatenate([[0.8, 0.7, 0.6, 0.3, 0.05], np.full(45, 0.02)])
    rows = [
        {"reward": r, "entropy": e, "frac_reward_zero_std": 0.1}
        for r, e in zip(noisy(reward, 0.01), entropy, strict=True)
    ]
    found = trl(tmp_path, rows, every=5)
    assert found.verdict == "collapsed"
    assert found.onset <= 30
    assert probable(found)[0] == "entropy"
    assert "below a fifth" not in diagnosis_text(found)


def test_a_gap_that_doubles_again_and_again_is_named(tmp_path: Path) -> None:
    gap = noisy(0.01 * 2 ** (np.maximum(T - 60, 0) / 27), 2e-4)
    found = verl(tmp_path, reward=noisy(np.where(T < 170, 0.6, 0.02)), gap=gap)
    assert found.verdict == "collapsed"
    assert probable(found) == ["engine gap"]
    assert found.departures[0].step < 120


def test_what_was_masked_before_its_mean_was_taken_is_no_lost_support(tmp_path: Path) -> None:
    name = "sampling/importance_sampling_ratio/mean"
    rows = [{"reward": 0.5 + t / 500, name: 0.17, "frac_reward_zero_std": 0.1} for t in range(100)]
    found = trl(tmp_path, rows)
    assert found.verdict == "healthy"
    assert not probable(found)
    assert any("below 1 by construction" in answer for answer in found.answers)


def test_a_part_of_the_reward_that_fell_is_not_hidden_by_the_sum(tmp_path: Path) -> None:
    accuracy, form = np.where(T < 120, 0.3, 0.0), np.clip(0.3 + T / 150, 0, 1)
    rows = [
        {"reward": a + f, "rewards/accuracy_reward": a, "rewards/format_reward": f, "frac_reward_zero_std": 0.1}
        for a, f in zip(accuracy, form, strict=True)
    ]
    found = trl(tmp_path, rows)
    assert found.verdict == "collapsed"
    assert 110 <= found.onset <= 130
    assert probable(found)[0] == "part of the reward"
    assert "rewards/format_reward rose" in found.causes[0].evidence[0]


def test_parts_that_all_rise_are_healthy(tmp_path: Path) -> None:
    rows = [{"reward": t / 100, "rewards/accuracy": t / 200, "rewards/format": t / 200} for t in range(100)]
    found = trl(tmp_path, [row | {"frac_reward_zero_std": 0.1} for row in rows])
    assert (found.verdict, probable(found)) == ("healthy", [])


def test_numbers_that_are_not_finite_for_three_rows_decide(tmp_path: Path) -> None:
    broken = T[:60] >= 57
    nan = np.where(broken, np.nan, 0.3)
    found = verl(tmp_path, reward=np.where(broken, 0.0, 0.6), entropy=nan, loss=nan, norm=nan)
    assert (found.verdict, found.onset) == ("collapsed", 58)
    assert probable(found)[0] == "gradient or non-finite"


def test_a_reward_on_its_floor_decides_before_the_rule_can(tmp_path: Path) -> None:
    found = verl(tmp_path, reward=np.concatenate([noisy(np.full(60, 0.6)), np.zeros(5)]))
    assert (found.verdict, found.onset) == ("collapsed", 61)


def test_a_reward_that_was_often_on_its_floor_may_be_there_again(tmp_path: Path) -> None:
    found = verl(tmp_path, reward=np.where(RNG.random(60) < 0.6, 0.0, 0.25) * (np.arange(60) < 57))
    assert found.verdict != "collapsed" or "rows" not in found.outcome.reason


def test_a_loss_of_less_than_half_is_a_decline(tmp_path: Path) -> None:
    reward = np.concatenate([np.linspace(0.5, 0.78, 60), np.linspace(0.78, 0.48, 140)])
    found = verl(tmp_path, reward=noisy(reward), entropy=noisy(0.3 + 0.01 * np.maximum(T - 40, 0)))
    assert found.verdict == "declining"
    assert 60 < found.onset < 160
    assert "still falling" in found.outcome.reason
    assert probable(found) == ["entropy"]


def test_a_flat_noisy_curve_does_not_decline(tmp_path: Path) -> None:
    found = verl(tmp_path, reward=noisy(np.full(200, 0.4), 0.1))
    assert found.verdict == "stall"


def test_truncation_that_falls_is_no_cause(tmp_path: Path) -> None:
    found = verl(tmp_path, reward=noisy(0.3 + T / 400), cut=noisy(np.clip(1 - T / 60, 0.1, 1)), length=500 - T)
    assert (found.verdict, probable(found)) == ("healthy", [])


def test_a_gradient_that_is_zero_where_groups_are_equal_does_not_rise(tmp_path: Path) -> None:
    norm = np.where(RNG.random(200) < 0.6, 0.0, 0.3)
    found = verl(tmp_path, reward=noisy(0.3 + T / 400), norm=norm)
    assert all(one.column != "grad_norm" for one in found.departures)


def test_a_length_that_ends_at_twice_its_start_did_not_stay(tmp_path: Path) -> None:
    length = 225 * 2 ** (np.maximum(T - 80, 0) / 90)
    found = verl(
        tmp_path, reward=np.where(T < 170, 0.6, 0.02), length=noisy(length, 3), cut=noisy(np.where(T < 150, 0.05, 0.9))
    )
    assert not any(
        "length" in sentence and "stayed" in sentence for cause in found.causes for sentence in cause.against
    )


def test_groups_without_variance_are_not_solved_on_a_scale_above_one(tmp_path: Path) -> None:
    rows = [{"reward": 2.0 if t < 60 else 0.1, "frac_reward_zero_std": 0.1 if t < 50 else 0.95} for t in range(100)]
    found = trl(tmp_path, rows)
    assert "zero-variance groups" in probable(found)
    assert not any("solved" in sentence for cause in found.causes for sentence in cause.against)


def test_a_growing_distance_to_the_reference_is_a_cause(tmp_path: Path) -> None:
    rows = [{"reward": 3.0 if t < 85 else 0.1, "kl": 0.003 * 2 ** (max(t - 30, 0) / 6)} for t in range(100)]
    found = trl(tmp_path, [row | {"frac_reward_zero_std": 0.1} for row in rows])
    assert probable(found) == ["distance to the reference"]


def test_a_hump_of_batches_of_eight_is_no_collapse(tmp_path: Path) -> None:
    share = np.concatenate([np.full(60, 0.35), np.full(30, 0.85), np.full(100, 0.35)])
    rows = [{"reward": RNG.binomial(8, p) / 8, "frac_reward_zero_std": 0.1} for p in share]
    found = trl(tmp_path, rows)
    assert found.verdict == "cannot tell"
    assert "8 samples" in found.outcome.reason


def test_rates_of_the_rule_stand_beside_a_collapse_only(tmp_path: Path) -> None:
    assert verl(tmp_path, reward=noisy(np.full(200, 0.4))).outcome.checked == ""
    assert "Measured elsewhere" in verl(tmp_path, reward=np.where(T < 100, 0.6, 0.01) + 1e-3 * T / 200).outcome.checked


def test_a_constant_lag_is_off_policy_too(tmp_path: Path) -> None:
    found = verl(tmp_path, reward=noisy(0.3 + T / 400), lag=np.full(200, 4.0), clipped=np.zeros(200))
    text = diagnosis_text(found)
    assert "4 versions old" in text
    assert "nothing in the log shows" not in text


def test_a_loss_of_zero_is_explained(tmp_path: Path) -> None:
    rows = [{"loss": 0.0, "reward": 0.5, "grad_norm": 0.3, "frac_reward_zero_std": 0.1} for _ in range(10)]
    assert any(answer.startswith("Why is the loss 0? By construction") for answer in trl(tmp_path, rows).answers)


@pytest.mark.parametrize("separator", [" | ", "\t"])
def test_a_pasted_table_is_read(separator: str, tmp_path: Path) -> None:
    header = separator.join(["Step", "Training Loss", "reward", "reward_std", "completion_length"])
    rule = [" | ".join(["--"] * 5)] if "|" in separator else []
    rows = [separator.join([str(t), "0.01", str(0.8 if t < 70 else 0.05), "0.3", "200"]) for t in range(1, 101)]
    found = read(tmp_path / "table.md", "\n".join([header, *rule, *rows]))
    assert (found.run.framework, found.verdict) == ("trl", "collapsed")


def test_a_dictionary_over_several_lines_is_one_row(tmp_path: Path) -> None:
    row = "{'loss': 0.1, 'grad_norm': 0.2, \n'reward': 0.5, \n'frac_reward_zero_std': 0.1}\n\n"
    path = tmp_path / "train.log"
    path.write_text(row * 6)
    assert read_run(path).series["reward"].values.tolist() == [0.5] * 6


def test_openrlhf_prints_its_step_before_the_dictionary(tmp_path: Path) -> None:
    line = "(PPOTrainer pid=7) INFO Global step {}: {{'actor_lr': 1e-06, 'reward': 0.3, 'truncated': 0.1}}"
    path = tmp_path / "train.log"
    path.write_text("\n".join(line.format(t) for t in range(5, 9)))
    run = read_run(path)
    assert run.framework == "openrlhf"
    assert run.series["truncated_share"].steps.tolist() == [5, 6, 7, 8]


def test_a_table_of_a_notebook_has_spaces_in_its_names(tmp_path: Path) -> None:
    rows = [f"| {t} | 0.0 | 0.5 | 200 | 0.{t} |" for t in range(1, 9)]
    header = "| Step | Training Loss | reward | completions / mean_length | rewards / accuracy / mean |"
    path = tmp_path / "table.md"
    path.write_text("\n".join([header, "|---|---|---|---|---|", *rows]))
    run = read_run(path)
    assert {"loss", "reward", "length_mean"} <= run.series.keys()
    assert list(run.parts) == ["rewards/accuracy/mean"]


def test_numbers_that_are_not_finite_explain_what_began_with_them(tmp_path: Path) -> None:
    broken, long = T[:60] >= 57, np.where(T[:60] >= 56, 1024.0, 300.0)
    nan = np.where(broken, np.nan, 0.3)
    found = verl(tmp_path, reward=np.where(broken, 0.0, 0.6), loss=nan, norm=nan, length=long)
    assert probable(found)[0] == "gradient or non-finite"


def test_slow_growth_is_dated_by_the_start(tmp_path: Path) -> None:
    reward = np.concatenate([np.linspace(0.5, 0.75, 60), np.linspace(0.75, 0.48, 140)])
    found = verl(tmp_path, reward=noisy(reward), entropy=0.3 * np.exp(np.maximum(T - 40, 0) / 90))
    assert found.verdict == "declining"
    assert probable(found) == ["entropy"]
    assert found.departures[0].step < 100
    assert found.try_next


def test_a_jump_at_a_resume_has_advice(tmp_path: Path) -> None:
    steps = [*range(1, 101), *range(60, 161)]
    jumped = [t >= 100 for t in range(len(steps))]
    rows = [
        {"step": step, "data": {"critic/score/mean": 0.1 if late else 0.6, "actor/entropy": 3.0 if late else 0.3}}
        for step, late in zip(steps, jumped, strict=True)
    ]
    found = read(tmp_path / "metrics.jsonl", "\n".join(map(json.dumps, rows)))
    assert "resume jump" in probable(found)
    assert any("load_contents" in one.set for one in found.try_next)


def test_a_distance_to_the_reference_that_drifts_is_not_dated_by_its_start(tmp_path: Path) -> None:
    drifting = 0.01 * 2 ** (T[:120] / 20)
    cut = np.where(T[:120] < 80, 0.02, 0.9)
    reward = np.where(T[:120] < 95, 0.6, 0.02)
    names = ["kl", "completions/clipped_ratio", "reward"]
    rows = [dict(zip(names, map(float, row), strict=True)) for row in zip(drifting, cut, reward, strict=True)]
    found = trl(tmp_path, [row | {"frac_reward_zero_std": 0.1} for row in rows])
    assert next(one.step for one in found.departures if one.column == "kl_reference") > 20


def test_a_slope_that_runs_through_a_resume_is_no_jump(tmp_path: Path) -> None:
    slope = noisy(np.where(T < 100, 900, np.maximum(900 - 25 * (T - 100.0), 60)), 3)
    reward, again = noisy(np.where(T < 150, 0.7, 0.02)).clip(0, 1), [*T[:115], *T[108:]]
    for length, said in ((slope[again], "truncation and length"), ([*slope[:115], *slope[108:] / 9], "resume jump")):
        data = [{"critic/score/mean": reward[t], "response_length/mean": x} for t, x in zip(again, length, strict=True)]
        lines = [json.dumps({"step": int(t) + 1, "data": row}) for t, row in zip(again, data, strict=True)]
        found = read(tmp_path / "metrics.jsonl", "\n".join(lines))
        assert found.verdict == "collapsed"
        assert ("resume jump" in probable(found), said in probable(found)) == (said == "resume jump", True)
