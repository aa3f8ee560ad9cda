"""Methods in verl's own trainer and FSDP worker: resume, exact lag, step scale, gauges, and what is refused."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

# verl itself is imported by the helpers, with our plugin
pytest.importorskip("transfer_queue", reason="runs in .ci/integrations verl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import verl_cpu  # noqa: F401
from ray import cloudpickle
from verl.utils.config import validate_config
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl_runs import PROMPTS, RESPONSES, config, save_model, start_ranks, steps, trainer, whole_model, worker

from vcpo_bench.adapters.verl.names import SAMPLER
from vcpo_bench.adapters.verl.worker import MethodWorker
from vcpo_bench.errors import UsageError

TWO = [f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS // 2}", "actor_rollout_ref.actor.ppo_epochs=2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start_ranks()
    return save_model(tmp_path_factory.mktemp("model"))


def lagging(lag: object) -> list[str]:
    path, name = SAMPLER
    sampler = "trainer.v1.sampler"
    chosen = [f"{sampler}.custom_sampler.path={path}", f"{sampler}.custom_sampler.name={name}"]
    return [*chosen, f"+{sampler}.sampler_kwargs.lag={lag}"]


def weights(run: Any) -> dict[str, torch.Tensor]:
    return dict(whole_model(run.actor_rollout_wg.worker).state_dict())


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize(
    ("method", "overrides"),
    [("clip+ess(base=measured)", lagging(2)), ("vespo", lagging(0)), ("decoupled", TWO)],
)
def test_resume_is_bit_exact(tmp_path: Path, model: Path, method: str, overrides: list[str]) -> None:
    saving = ["trainer.save_freq=3", *overrides]
    whole = trainer(config(tmp_path, method, "vcpo_bench", *saving), worker(model, 4))
    logs = steps(whole, 5)
    resumed = trainer(config(tmp_path, method, "vcpo_bench", *saving), worker(model, 4))
    resumed._load_checkpoint()
    resumed.version = resumed.global_steps
    later = steps(resumed, 2)
    assert resumed.global_steps == 5
    assert same(weights(whole), weights(resumed))
    for got, wanted in zip(later, logs[3:], strict=True):
        for name in ("vcpo_bench/step_scale", "vcpo_bench/lag_mean", "actor/lr", "actor/grad_norm"):
            assert got[name] == wanted[name], name
    other = trainer(config(tmp_path, "tis", "vcpo_bench", *saving), worker(model, 4))
    with pytest.raises(UsageError, match="was written with"):
        other._load_checkpoint()


def test_lag_is_exact(tmp_path: Path, model: Path) -> None:
    run = trainer(config(tmp_path, "tis", "vcpo_bench", *lagging(2)), worker(model, 4), noise=0.0)
    kept, prompts = [], []
    select = run.replay_buffer._materialize_batch

    def watched(*given: Any) -> Any:
        batch = select(*given)
        kept.append({tag["min_global_steps"] for tag in batch.tags})
        prompts.append(sorted({int(key.split("_")[0][1:]) for key in batch.keys}))
        return batch

    run.replay_buffer._materialize_batch = watched
    logs = steps(run, 6)
    assert kept == [{0}, {0}, {0}, {1}, {2}, {3}]
    assert prompts == [list(range(PROMPTS * step, PROMPTS * (step + 1))) for step in range(6)]
    assert [log["vcpo_bench/lag_max"] for log in logs] == [0, 1, 2, 2, 2, 2]
    assert [log["training/off_policy/trajectory_staleness/max"] for log in logs] == [0, 1, 2, 2, 2, 2]
    assert logs[0]["vcpo_bench/ess_ratio"] == pytest.approx(1.0, abs=1e-5)
    assert logs[5]["monitor/ess"] < 0.999


def test_lag_of_verls_own_trainer_and_its_limits(tmp_path: Path, model: Path) -> None:
    settings = config(tmp_path, None, "sync", *lagging(1))
    run = trainer(settings, worker(model, 4, ours=False), noise=0.0)
    logs = steps(run, 3)
    assert [log["training/off_policy/trajectory_staleness/max"] for log in logs] == [0, 1, 1]
    run.store.rows.clear()
    run.store.tags.clear()
    with pytest.raises(UsageError, match="should wait at step 4 are gone"):
        steps(run, 1)
    run = trainer(settings, worker(model, 4, ours=False))
    run.version = 7
    with pytest.raises(UsageError, match=r"weights \[7\] wrote this batch, and 0 should have"):
        steps(run, 1)
    with pytest.raises(UsageError, match=r"sampler_kwargs.lag is -1; set \+trainer"):
        trainer(config(tmp_path, None, "sync", *lagging(-1)), None)
    with pytest.raises(UsageError, match="generates while it trains"):
        trainer(config(tmp_path, "tis", "vcpo_bench_colocate_async", *lagging(1)), None)


def test_the_learning_rate_is_the_schedulers_again(tmp_path: Path, model: Path) -> None:
    made = worker(model, 4)
    run = trainer(config(tmp_path, "inverse-lag", "vcpo_bench", *lagging(3), *TWO), made)
    logs = steps(run, 6)
    warm = [1e-2 * min(step / 4, 1.0) for step in range(1, 7)]
    assert [log["actor/lr"] for log in logs] == pytest.approx(warm)  # one step of the schedule per batch
    assert made.engine.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2)
    assert logs[0]["vcpo_bench/step_scale"] > 2 * logs[5]["vcpo_bench/step_scale"]


def test_evidence_that_is_not_finite_changes_nothing(tmp_path: Path, model: Path) -> None:
    made = worker(model, 4)
    run = trainer(config(tmp_path, "vespo"), made)
    steps(run, 2)
    before, moments = weights(run), repr(made.engine.optimizer.state_dict()["state"])
    plain = run.agent_loop_manager._row

    def broken(*given: Any) -> Any:
        field, tag = plain(*given)
        field["rollout_log_probs"][0] = math.nan
        return field, tag

    run.agent_loop_manager._row = broken
    log = steps(run, 1)[0]
    assert log["vcpo_bench/step_skipped"] == 1
    assert same(before, weights(run))
    assert moments == repr(made.engine.optimizer.state_dict()["state"])
    run.agent_loop_manager._row = plain
    assert steps(run, 1)[0]["vcpo_bench/step_skipped"] == 0
    assert not same(before, weights(run))


@pytest.mark.parametrize("bypass", [False, True])
def test_the_gauges_of_verls_own_loss(tmp_path: Path, model: Path, bypass: bool) -> None:
    settings = [f"algorithm.rollout_correction.bypass_mode={bypass}", *lagging(2)]
    watched = trainer(config(tmp_path, None, "vcpo_bench_monitor", *settings), worker(model, 4, ours=False))
    logs = steps(watched, 4)
    plain = trainer(config(tmp_path, None, "sync", *settings), worker(model, 4, ours=False))
    steps(plain, 4)
    assert same(weights(watched), weights(plain))
    for log in logs:
        assert 1 / log["monitor/n"] <= log["monitor/ess"] < 1
        assert log["monitor/max_share"] > 1 / log["monitor/n"]
        assert log["monitor/log_weight_q05"] < log["monitor/log_weight_q50"] < log["monitor/log_weight_q95"]
        without_tokens, unjudged = RESPONSES + 1, 1
        assert log["monitor/n"] == PROMPTS * RESPONSES - without_tokens - unjudged
    assert math.isfinite(logs[-1]["monitor/pareto_k"])


@pytest.mark.parametrize("bypass", [False, True])
def test_a_reading_that_fails_is_one_warning_and_the_run_goes_on(
    tmp_path: Path, model: Path, bypass: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings = [f"algorithm.rollout_correction.bypass_mode={bypass}"]
    watched = trainer(config(tmp_path, None, "vcpo_bench_monitor", *settings), worker(model, 4, ours=False))
    watched._gauges.read = lambda *rows: {}["entropy"]
    logs = steps(watched, 3)
    plain = trainer(config(tmp_path, None, "sync", *settings), worker(model, 4, ours=False))
    steps(plain, 3)
    assert same(weights(watched), weights(plain))
    assert not any(name.startswith("monitor/") for log in logs for name in log)
    assert [record.getMessage() for record in caplog.records if "monitor is off" in record.getMessage()] == [
        "the monitor is off for the rest of this run: KeyError: 'entropy'"
    ]


def test_on_policy_it_is_verls_own_loss(tmp_path: Path, model: Path) -> None:
    after = []
    for method, mode in (("reinforce+grpo(eps=1e-6,std=sample)+token-mean", "vcpo_bench"), (None, "sync")):
        run = trainer(config(tmp_path, method, mode), worker(model, 4, ours=method is not None), noise=0.0)
        steps(run, 3)
        after.append(weights(run))
    for name, value in after[1].items():
        torch.testing.assert_close(after[0][name], value, rtol=1e-3, atol=1e-4)


def test_two_outputs_of_one_session_are_refused_and_watched(tmp_path: Path, model: Path) -> None:
    run = trainer(config(tmp_path, "tis"), worker(model, 4))
    put = run.store.kv_batch_put

    def second(keys: list[str], *given: Any, **named: Any) -> Any:
        return put([key.replace("_3_0", "_2_1") for key in keys], *given, **named)

    run.store.kv_batch_put = second
    with pytest.raises(UsageError, match="is output 1 of its session"):
        steps(run, 1)
    watched = trainer(config(tmp_path, None, "vcpo_bench_monitor"), worker(model, 4, ours=False))
    put = watched.store.kv_batch_put
    watched.store.kv_batch_put = second
    assert 0 < steps(watched, 1)[0]["monitor/ess"] < 1


def test_the_workers_of_a_cluster_take_coefficients(tmp_path: Path, model: Path) -> None:
    run = trainer(config(tmp_path, "tis"), worker(model, 4))
    run._init_resource_pool_mgr()
    (remote,) = run.role_worker_mapping.values()
    sent = cloudpickle.loads(cloudpickle.dumps(remote.__ray_actor_class__))
    assert issubclass(sent, ActorRolloutRefWorker)
    assert issubclass(sent.actor_worker_cls, MethodWorker)
    watched = trainer(config(tmp_path, None, "vcpo_bench_monitor"), worker(model, 4, ours=False))
    watched._init_resource_pool_mgr()
    (remote,) = watched.role_worker_mapping.values()
    assert remote.__ray_actor_class__ is ActorRolloutRefWorker


FSDP2 = "actor_rollout_ref.actor.strategy=fsdp2"
BYPASS = "algorithm.rollout_correction.bypass_mode=True"


@pytest.mark.parametrize(
    ("method", "mode", "overrides", "reason"),
    [
        ("tis", "sync", [], "staleness is invisible; set algorithm.rollout_correction.bypass_mode=True"),
        ("tis", "sync", [BYPASS, "trainer.use_v1=False"], "legacy trainer puts its own loss"),
        ("tis", "sync", [BYPASS, "algorithm.rollout_correction.rollout_is=token"], "belongs to the loss it replaces"),
        ("tis", "sync", [BYPASS, "actor_rollout_ref.rollout.calculate_log_probs=False"], "calculate_log_probs=True"),
        ("snis", "sync", [BYPASS], "all rows of the optimizer step together, and its loss hook sees single rows"),
        ("gepo", "sync", [BYPASS], "needs all rows of a prompt together"),
        ("clip+ess", "sync", [BYPASS], "scales the learning rate"),
        ("tis+rloo", "sync", [BYPASS], "configure it there and leave out"),
        ("tis(cap=x)", "vcpo_bench", [], "loss_mode="),
        ("tis", "vcpo_bench", [BYPASS], "set algorithm.rollout_correction.bypass_mode=False"),
        ("vcpo", "vcpo_bench", [], r"set actor.strategy=fsdp2, or .*\+otb.*baseline=group"),
        ("vcpo", "vcpo_bench", [FSDP2, "actor_rollout_ref.model.use_fused_kernels=True"], "kernels hide the head"),
        ("vcpo", "vcpo_bench", [FSDP2, "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"], "cuts a row"),
        ("gac", "vcpo_bench", [], "compares whole gradients"),
        ("clip+lr-matched", "vcpo_bench", [], "borrows the step scales"),
        ("decoupled", "vcpo_bench", [], "set actor.ppo_epochs to 2 or more"),
        ("tis+kl(anchor=reference)", "vcpo_bench", [], "actor.use_kl_loss=True and actor.kl_loss_coef=0"),
        ("tis", "vcpo_bench", ["actor_rollout_ref.actor.use_kl_loss=True"], "kl_loss_coef belongs"),
        ("tis", "vcpo_bench", ["actor_rollout_ref.actor.entropy_coeff=0.1"], "entropy_coeff belongs"),
        ("tis", "vcpo_bench", ["algorithm.adv_estimator=gae"], "have no critic"),
        ("tis", "vcpo_bench", ["algorithm.use_kl_in_reward=True"], "changes the reward"),
        ("tis", "vcpo_bench", ["actor_rollout_ref.rollout.top_p=0.9"], "top_p truncates what is sampled"),
        ("tis", "vcpo_bench", ["distillation.enabled=True"], "distillation has a loss"),
        ("tis", "vcpo_bench", ["actor_rollout_ref.actor.strategy=veomni"], "strategy=veomni averages in its own way"),
        (None, "vcpo_bench", [], "needs a method"),
        (None, "vcpo_bench_monitor", ["actor_rollout_ref.rollout.calculate_log_probs=False"], "calculate_log_probs"),
    ],
)
def test_refused_before_anything_is_started(
    tmp_path: Path, method: str | None, mode: str, overrides: list[str], reason: str
) -> None:
    settings = config(tmp_path, method, mode, *overrides)
    with pytest.raises(UsageError, match=reason):
        validate_config(settings, use_reference_policy=False, use_critic=False)


@pytest.mark.parametrize(
    ("method", "mode", "overrides"),
    [
        ("vespo", "sync", [BYPASS]),
        ("vespo", "separate_async", [BYPASS]),
        ("tis+opsm", "vcpo_bench_colocate_async", []),
        ("tis+kl(anchor=reference)", "vcpo_bench", ["actor_rollout_ref.actor.use_kl_loss=True"]),
        ("decoupled", "vcpo_bench", TWO),
        ("vcpo", "vcpo_bench", [FSDP2]),
        (None, "sync", []),
    ],
)
def test_configurations_that_pass(tmp_path: Path, method: str | None, mode: str, overrides: list[str]) -> None:
    sizes = ["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4"]
    sizes += ["actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4", "actor_rollout_ref.actor.kl_loss_coef=0"]
    sizes += ["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4"]
    settings = config(tmp_path, method, mode, *sizes, *overrides)
    validate_config(settings, use_reference_policy=False, use_critic=False)
