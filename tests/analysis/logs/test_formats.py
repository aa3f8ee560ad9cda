"""Golden logs: small files as each framework writes them, typed from its documentation."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from foreign_runs import event

from vcpo_bench.analysis.logs import read_run
from vcpo_bench.analysis.logs.names import frameworks
from vcpo_bench.errors import UsageError

GOLDEN = Path(__file__).parent / "golden"


def values(path: Path, column: str, **options: str) -> list[float]:
    return [round(float(value), 6) for value in read_run(path, **options).series[column].values]


@pytest.mark.parametrize(
    ("file", "framework", "column", "expected", "last_step"),
    [
        ("verl_console.log", "verl", "reward", [0.25, 0.5, 0.75], 3),
        ("verl_console.log", "verl", "eval_reward", [0.2], 3),
        ("verl_console.log", "verl", "entropy", [0.9, 0.8, 0.7], 3),
        ("verl_file.jsonl", "verl", "reward", [0.25, 0.5], 2),
        ("vcpo_fork.jsonl", "vcpo-fork", "ess_ratio", [0.9, 0.4], 2),
        ("trl_console.log", "trl", "reward", [0.1, 0.2], 20),
        ("trl_async.jsonl", "trl", "kl_mu_theta_k3", [0.001, 0.002], 2),
        ("slime_console.log", "slime", "reward", [0.3, 0.35], 1),
        ("slime_console.log", "slime", "eval_reward", [0.4, 0.55], 1),
        ("slime_console.log", "slime", "logp_gap", [0.01, 0.012], 1),
        ("areal_console.log", "areal", "reward", [0.4, 0.45], 2),
        ("areal_console.log", "areal", "kl_anchor", [-0.01, -0.02], 2),
        ("skyrl.jsonl", "skyrl", "lag_max", [1.0, 3.0], 2),
        ("skyrl_dppo.jsonl", "skyrl", "reward", [0.2, 0.3], 2),
        ("skyrl_dppo.jsonl", "skyrl", "logp_gap", [0.012, 0.015], 2),
        ("skyrl_dppo.jsonl", "skyrl", "share_masked", [0.1, 0.2], 2),
        ("trl_async_stable.jsonl", "trl", "kl_mu_theta_k3", [0.001, 0.002], 2),
        ("trl_async_stable.jsonl", "trl", "lag_max", [2.0, 3.0], 2),
        ("trl_async_stable.jsonl", "trl", "length_mean", [200.0, 210.0], 2),
        ("nemo.csv", "nemo-rl", "logp_gap", [0.02, 0.03], 2),
        ("openrlhf.csv", "openrlhf", "grad_norm", [0.5, 0.6], 2),
        ("openrlhf.csv", "openrlhf", "eval_reward", [0.3, 0.5], 2),
        ("pipelinerl.csv", "pipelinerl", "lag_mean", [128.0, 256.0], 2),
        ("open_instruct.csv", "open-instruct", "reward", [4.0, 5.0], 2),
        ("tinker.jsonl", "tinker-cookbook", "kl_mu_theta_k1", [0.001, 0.002], 1),
        ("tinker.jsonl", "tinker-cookbook", "zero_variance_share", [0.25, 0.5], 1),
        ("prime_rl_orchestrator.log", "prime-rl", "reward", [0.4353, 0.45], 1),
        ("prime_rl_orchestrator.log", "prime-rl", "zero_variance_share", [0.25, 0.5], 1),
        ("prime_rl_orchestrator.log", "prime-rl", "lag_max", [0.0, 2.0], 1),
        ("prime_rl_trainer.log", "prime-rl", "kl_mu_theta_k3", [0.0012, 0.0015], 1),
        ("prime_rl_trainer.log", "prime-rl", "grad_norm", [0.041, 0.045], 1),
        ("prime_rl_2026-08_orchestrator.log", "prime-rl", "reward", [0.4353, 0.45], 2),
        ("prime_rl_2026-08_orchestrator.log", "prime-rl", "zero_variance_share", [0.25, 0.5], 2),
        ("prime_rl_2026-08_orchestrator.log", "prime-rl", "lag_max", [0.0, 2.0], 2),
        ("prime_rl_2026-08_orchestrator.log", "prime-rl", "truncated_share", [0.125, 0.25], 2),
        ("prime_rl_2026-08_trainer.log", "prime-rl", "kl_mu_theta_k3", [0.0012, 0.0015], 2),
        ("prime_rl_2026-08_trainer.log", "prime-rl", "grad_norm", [0.041, 0.045], 2),
        ("nemo_console.log", "nemo-rl", "reward", [0.3, 0.4], 4),
        ("nemo_console.log", "nemo-rl", "kl_mu_theta_k3", [0.003, 0.004], 4),
        ("ms_swift.jsonl", "trl", "reward", [0.4, 0.5], 10),
        ("twinkle.jsonl", "twinkle", "reward", [0.34375, 0.375], 1),
        ("twinkle.jsonl", "twinkle", "truncated_share", [0.25, 1.0], 1),
        ("twinkle.jsonl", "twinkle", "zero_variance_share", [0.5], 1),
        ("baseten.jsonl", "baseten-loops", "reward_std", [0.31, 0.28], 2),
    ],
)
def test_a_golden_log(file: str, framework: str, column: str, expected: list[float], last_step: float) -> None:
    run = read_run(GOLDEN / file)
    assert run.framework == framework
    assert values(GOLDEN / file, column) == expected
    assert run.last_step == last_step


def test_what_verl_prints_again_at_the_end_is_not_the_evaluation_of_step_0(tmp_path: Path) -> None:
    name = "val-core/gsm8k/acc/mean@1"
    lines = [f"step:{step} - {name}:{0.1 + step / 100} - actor/pg_loss:0.1" for step in range(0, 41, 10)]
    log = tmp_path / "console.log"
    log.write_text("\n".join([*lines, f"\"Final validation metrics: {{'{name}': np.float64(0.9)}}\""]) + "\n")
    reward = read_run(log).series["eval_reward"]
    assert reward.steps.tolist() == [0, 10, 20, 30, 40]
    assert reward.values.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_of_what_open_instruct_evaluates_only_the_scores_are_reward(tmp_path: Path) -> None:
    row = {"scores": 4.0, "policy/clipfrac_avg": 0.01, "eval/sequence_lengths": 800.0, "eval/stop_rate": 1.0}
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps({"training_step": 1, **row}) + "\n")
    assert "eval_reward" not in read_run(file, "open-instruct").series
    file.write_text(json.dumps({"training_step": 1, **row, "eval/scores": 5.0, "eval/pass_at_1": 0.5}) + "\n")
    assert values(file, "eval_reward", framework="open-instruct") == [5.0]


def test_evaluations_of_pipeline_rl_are_in_the_log_of_its_actor(tmp_path: Path) -> None:
    file = tmp_path / "actor.jsonl"
    file.write_text("".join(json.dumps({"_step": t, "actor/test_reward_mean": t / 10}) + "\n" for t in range(3)))
    assert "eval_reward" not in read_run(GOLDEN / "pipelinerl.csv").series
    assert "actor/test_reward_mean" in frameworks()["pipelinerl"].switches["eval_reward"]
    run = read_run(file, mapping={"eval_reward": "actor/test_reward_mean"})
    assert run.series["eval_reward"].values.tolist() == [0.0, 0.1, 0.2]


def test_kl_of_trl_is_to_the_reference_unless_the_trainer_is_asynchronous() -> None:
    assert "kl_mu_theta_k3" not in read_run(GOLDEN / "trl_console.log").series
    assert read_run(GOLDEN / "trl_console.log").series["kl_reference"].source.tag == "other"
    assert "kl_reference" not in read_run(GOLDEN / "trl_async.jsonl").series


def test_two_files_of_prime_rl_are_one_run() -> None:
    run = read_run(GOLDEN / "prime_rl")
    assert run.framework == "prime-rl"
    assert {"reward", "lag_max", "kl_mu_theta_k3", "grad_norm", "seconds"} <= set(run.series)
    assert not run.resumes
    assert not run.overwritten


def test_one_file_of_both_processes_of_prime_rl_is_one_run_that_went_on() -> None:
    run = read_run(GOLDEN / "prime_rl_one_file.jsonl")
    assert {name: run.series[name].steps.tolist() for name in ("reward", "kl_mu_theta_k3", "grad_norm", "seconds")} == {
        name: [0, 1, 2, 3, 4] for name in ("reward", "kl_mu_theta_k3", "grad_norm", "seconds")
    }
    assert not run.resumes
    assert not run.overwritten


def test_the_newest_checkpoint_of_a_trainer_holds_the_whole_history(tmp_path: Path) -> None:
    for step in (2, 10):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        history = [
            {"step": t, "reward": t / 10, "completions/mean_length": 50.0, "reward_std": 0.1} for t in range(step)
        ]
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history, "logging_steps": 10}))
    run = read_run(tmp_path)
    assert run.framework == "trl"
    assert run.last_step == 9
    assert any("NaN" in note for note in run.notes)


def test_tensorboard_and_a_truncated_event_file(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1.host"
    records = [event(t, "rollout/reward_mean", 0.5) + event(t, "train/actor_lr", 1e-6) for t in range(5)]
    file.write_bytes(b"".join(records))
    run = read_run(tmp_path)
    assert run.framework == "openrlhf"
    assert run.series["reward"].steps.tolist() == [0, 1, 2, 3, 4]
    file.write_bytes(b"".join(records)[:-7])
    run = read_run(tmp_path)
    assert run.series["lr"].steps.size == 4
    assert any("damaged" in note and "9 events" in note for note in run.notes)


def test_trackio_and_mlflow_databases(tmp_path: Path) -> None:
    trackio, mlflow = tmp_path / "trackio.db", tmp_path / "mlflow.db"
    with closing(sqlite3.connect(trackio)) as database:
        database.execute("CREATE TABLE metrics (id INTEGER, run_name TEXT, step INTEGER, metrics TEXT)")
        for step in range(4):
            row = json.dumps({"train/reward": step / 10, "train/completions/mean_length": 10, "train/loss": "NaN"})
            database.execute("INSERT INTO metrics VALUES (?, 'a', ?, ?)", (step, step, row))
        database.commit()
    with closing(sqlite3.connect(mlflow)) as database:
        database.execute(
            "CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN)"
        )
        for step in range(4):
            for name in ("critic/score/mean", "val-core/gsm8k/acc/mean_at_1", "actor/pg_loss"):
                database.execute("INSERT INTO metrics VALUES (?, ?, ?, 'r', ?, 0)", (name, step / 10, step, step))
        database.commit()
    assert values(trackio, "reward") == [0.0, 0.1, 0.2, 0.3]
    assert np.isnan(read_run(trackio).series["loss"].values).all()
    assert values(mlflow, "reward") == values(mlflow, "eval_reward") == [0.0, 0.1, 0.2, 0.3]
    assert not read_run(mlflow).resumes


def test_mlflow_files(tmp_path: Path) -> None:
    metric = tmp_path / "mlruns" / "0" / "abc" / "metrics" / "critic" / "score" / "mean"
    metric.parent.mkdir(parents=True)
    metric.write_text("1 0.5 0\n2 0.6 1\n")
    assert values(tmp_path, "reward") == [0.5, 0.6]


def test_token_dumps_give_exact_sequence_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = []
    with (tmp_path / "train_data_step3.jsonl").open("w") as file:
        for _ in range(40):
            then, now = rng.normal(-1, 0.1, 6), rng.normal(-1, 0.1, 6)
            weights.append(float(np.exp((now - then)[:5].sum())))
            row = {
                "generation_logprobs": then.tolist(),
                "prev_logprobs": now.tolist(),
                "token_loss_mask": [1] * 5 + [0],
            }
            file.write(json.dumps({**row, "sample_loss_mask": 1.0, "rewards": 0.5}) + "\n")
    run = read_run(tmp_path)
    w = np.array(weights)
    assert run.series["ess_ratio"].values[0] == pytest.approx(w.sum() ** 2 / (w.size * (w**2).sum()))
    assert run.series["max_share"].values[0] == pytest.approx(w.max() / w.sum())
    assert run.series["weight_mean"].values[0] == pytest.approx(w.mean())
    assert run.series["ess_ratio"].source.tag == "exact"
    assert run.series["reward"].steps.tolist() == [3]


def test_a_table_exported_from_the_wandb_page(tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["Step", "a - critic/score/mean", "a - critic/score/mean__MIN", "a - actor/pg_loss"])
        writer.writerows([[0, 0.1, 0.0, 0.3], [1, 0.2, 0.0, ""]])
    run = read_run(file)
    assert run.series["reward"].values.tolist() == [0.1, 0.2]
    assert run.series["loss"].values.tolist() == [0.3]


def test_rollouts_and_updates_on_one_axis(tmp_path: Path) -> None:
    rows = [{"rollout/step": t, "rollout/raw_reward": t / 10} for t in range(10)]
    rows += [{"train/step": t, "train/grad_norm": float(t), "train/pg_clipfrac": 0.1} for t in range(39)]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    run = read_run(tmp_path)
    assert run.series["grad_norm"].steps.tolist() == list(range(10))
    assert run.series["grad_norm"].values.tolist() == [4 * t + 1.5 for t in range(9)] + [37.0]
    assert any("4 times as fast" in note for note in run.notes)


def test_updates_between_evaluations_that_count_themselves_stay_rows(tmp_path: Path) -> None:
    rows = [{"rollout/step": t, "eval/math": t / 10} for t in range(10)]
    rows += [{"train/step": t, "rollout/raw_reward": 0.5, "train/pg_clipfrac": 0.1} for t in range(40)]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert read_run(tmp_path).series["reward"].steps.tolist() == [t / 4 for t in range(40)]


def test_both_consoles_of_prime_rl_are_one_run(tmp_path: Path) -> None:
    for part in ("orchestrator", "trainer"):
        (tmp_path / f"{part}.log").write_bytes((GOLDEN / f"prime_rl_{part}.log").read_bytes())
    run = read_run(tmp_path)
    assert {"reward", "kl_mu_theta_k3"} <= set(run.series)


def test_one_of_several_runs_of_an_export_is_named() -> None:
    table = GOLDEN / "wandb_two_runs.csv"
    assert values(Path(f"{table}::good"), "reward") == [0.25, 0.75]
    assert values(Path(f"{table}::bad"), "reward") == [0.5, 0.0]
    with pytest.raises(UsageError, match=r"several runs \(bad, good\); name one: .*::RUN"):
        read_run(table)
    with pytest.raises(UsageError, match="name one"):
        read_run(f"{table}::other")


def test_the_step_can_be_mapped_too(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    rows = [{"step": row, "updates_done": 8 * row, "score": 0.5} for row in range(4)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(file, mapping={"reward": "score", "step": "updates_done"})
    assert run.series["reward"].steps.tolist() == [0, 8, 16, 24]
    assert run.step_name == "updates_done"
    with pytest.raises(UsageError, match="--map step=none: the log has no such name"):
        read_run(file, mapping={"reward": "score", "step": "none"})


def test_a_refusal_names_the_files_that_trainers_write(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("nothing here\n")
    with pytest.raises(UsageError, match=r"metrics\.jsonl of prime-rl"):
        read_run(tmp_path / "out.log")


def test_a_log_that_powershell_redirected(tmp_path: Path) -> None:
    for name in ("trl_console.log", "verl_file.jsonl", "nemo.csv"):
        text = (GOLDEN / name).read_text()
        (tmp_path / name).write_text(text, encoding="utf-16")
        assert set(read_run(tmp_path / name).series) == set(read_run(GOLDEN / name).series)


@pytest.mark.parametrize(
    "before", ["2026-11-20T10:00:00.123456789Z stdout F ", "2026-11-20T10:00:00.123+01:00 ", "[rank0]: ", "0: "]
)
@pytest.mark.parametrize(
    ("name", "column"), [("trl_console.log", "reward"), ("nemo_console.log", "reward"), ("verl_console.log", "entropy")]
)
def test_what_a_container_puts_before_each_line_is_removed(tmp_path: Path, before: str, name: str, column: str) -> None:
    lines = (GOLDEN / name).read_text().splitlines()
    (tmp_path / name).write_text("\n".join(before + line for line in lines))
    carried, plain = (read_run(folder / name).series[column] for folder in (tmp_path, GOLDEN))
    assert carried.steps.tolist() == plain.steps.tolist()
    assert carried.values.tolist() == plain.values.tolist()
