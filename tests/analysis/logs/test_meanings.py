"""Names that mean another quantity in another trainer, or in another version of it."""

import json
from pathlib import Path

from vcpo_bench.analysis.logs import read_run

GOLDEN = Path(__file__).parent / "golden"


def written(folder: Path, rows: list[dict[str, float]]) -> Path:
    file = folder / "metrics.jsonl"
    file.write_text("".join(json.dumps({"step": t, "data": row}) + "\n" for t, row in enumerate(rows)))
    return file


OFF_POLICY = "training/off_policy/trajectory_staleness"
VERL_ROW = {"actor/pg_loss": 0.1, "critic/score/mean": 0.5, "response_length/clip_ratio": 0.25}


def test_the_lag_of_verl_is_since_the_oldest_token_and_else_a_lower_bound(tmp_path: Path) -> None:
    bounds = {f"{OFF_POLICY}/mean": 1.0, f"{OFF_POLICY}/max": 2.0}
    file = written(tmp_path, [VERL_ROW | bounds] * 2)
    assert {read_run(file).series[name].source.tag for name in ("lag_mean", "lag_max")} == {"other"}
    file = written(
        tmp_path, [VERL_ROW | bounds | {f"{OFF_POLICY}_worst/mean": 3.0, f"{OFF_POLICY}_worst/max": 4.0}] * 2
    )
    lags = [read_run(file).series[name] for name in ("lag_mean", "lag_max")]
    assert [(lag.values.tolist(), lag.source.tag) for lag in lags] == [([3.0, 3.0], "exact"), ([4.0, 4.0], "exact")]


def test_the_truncation_that_the_new_trainer_of_verl_logs_is_another_quantity(tmp_path: Path) -> None:
    legacy = read_run(written(tmp_path, [VERL_ROW] * 2)).series["truncated_share"]
    assert (legacy.values.tolist(), legacy.source.tag) == ([0.25, 0.25], "exact")
    new = read_run(written(tmp_path, [VERL_ROW | {f"{OFF_POLICY}/mean": 0.0}] * 2)).series["truncated_share"]
    assert new.source.tag == "proxy"
    fork = read_run(written(tmp_path, [VERL_ROW | {"staleness/ess_ratio": 0.9}] * 2))
    assert (fork.framework, fork.series["truncated_share"].source.tag) == ("vcpo-fork", "exact")


def test_in_bypass_mode_the_actor_of_verl_logs_the_correction(tmp_path: Path) -> None:
    names = {"actor/rollout_corr/k3_kl": 0.01, "actor/rollout_corr/rollout_is_mean": 0.9}
    series = read_run(written(tmp_path, [VERL_ROW | names] * 2)).series
    assert (series["kl_mu_theta_k3"].values[0], series["weight_mean"].values[0]) == (0.01, 0.9)


def test_the_asynchronous_trainer_of_trl_is_known_before_it_logged_a_lag(tmp_path: Path) -> None:
    row = {"reward": 0.5, "completions/mean_length": 90.0, "kl": 0.01, "ratio": 0.99}
    series = read_run(written(tmp_path, [row] * 2)).series
    assert {name: series[name].source.tag for name in ("kl_mu_theta_k3", "weight_mean")} == {
        "kl_mu_theta_k3": "exact",
        "weight_mean": "exact",
    }


def test_the_reward_std_of_trl_is_that_of_a_group_only_where_it_is_asynchronous() -> None:
    assert read_run(GOLDEN / "trl_async_stable.jsonl").series["reward_std"].source.tag == "exact"
    assert read_run(GOLDEN / "trl_console.log").series["reward_std"].source.tag == "other"
