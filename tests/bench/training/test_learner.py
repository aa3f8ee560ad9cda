"""The learner against first principles: autograd on the whole loss, snapshots of old weights, cut batches."""

import copy
import math

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.batch_generator import BatchGenerator
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.regimes import Order
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import parse_method
from vcpo_bench.records import STEPS_FILE

pytestmark = pytest.mark.usefixtures("no_evaluations")


def small(method: str = "reinforce", staleness: int = 0, **more: object) -> Trainer:
    config = {"task": "walk-eos", "prompts": 4, "responses": 4, "steps": 6, "eval_every": 100, "lr_warmup": 0} | more
    return build_trainer(CellConfig(method=method, staleness=staleness, seed=0, **config))


def sampled(trainer: Trainer, index: int) -> Trajectories:
    """Batch `index` from the current weights, outside the schedule."""
    config = trainer.config
    published = PublishedPolicy(trainer.policy, 1, "off", 0)
    return BatchGenerator(config, trainer.task, published).run([Order(index)], trainer.step, [config.prompts])[0]


def poisoned(trainer: Trainer) -> Trajectories:
    """The batch that is due, with one log-probability that is not a number."""
    batch = sampled(trainer, trainer.step)
    batch.behavior_logp[0, 0, 0] = math.nan
    return batch


def stale_batch(trainer: Trainer) -> Trajectories:
    """A batch sampled by the start policy, after which the policy has moved a little."""
    batch = sampled(trainer, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trainer.policy.parameters():
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=generator))
    return batch


def gradients(trainer: Trainer) -> Tensor:
    return torch.cat([p.grad.flatten().double() for p in trainer.policy.parameters() if p.grad is not None])


def unclipped(step_norm: float, gradient: Tensor) -> Tensor:
    return gradient * max(step_norm / GRAD_CLIP, 1.0)


def test_gradient_is_that_of_the_coefficients() -> None:
    trainer = small("reinforce")
    batch = stale_batch(trainer)
    twin = copy.deepcopy(trainer.policy)
    done = trainer.learner.update(batch, 0)
    scores = score(twin, batch.flat().each)
    assert done.update is not None
    loss = -(done.update.coefficients.flatten(0, 1) * scores.logp).sum()
    loss.backward()
    expected = torch.cat([p.grad.flatten().double() for p in twin.parameters() if p.grad is not None])
    assert done.made.norm == pytest.approx(float(expected.norm()), rel=1e-4)
    torch.testing.assert_close(unclipped(done.made.norm, gradients(trainer)), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", ["reinforce", "clip", "vcpo", "vcpo(baseline=group)", "vespo", "gspo"])
@pytest.mark.parametrize("tokens", [1, 60])
def test_micro_batches_change_nothing_but_rounding(method: str, tokens: int) -> None:
    whole, cut = small(method), small(method)
    cut.learner = Learner(cut.policy, parse_method(method), LearnerSettings(3e-4, micro_tokens=tokens))
    first, second = whole.learner.update(stale_batch(whole), 0), cut.learner.update(stale_batch(cut), 0)
    assert first.update is not None
    assert second.update is not None
    torch.testing.assert_close(first.update.coefficients, second.update.coefficients, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(gradients(whole), gradients(cut), rtol=2e-3, atol=2e-6)


def test_score_norms_are_those_of_one_backward_per_trajectory() -> None:
    trainer = small("vcpo")
    batch = stale_batch(trainer)
    twin = copy.deepcopy(trainer.policy)
    done = trainer.learner.update(batch, 0)
    assert done.score_norm_sq is not None
    scores = score(twin, batch.flat().each)
    for row, found in zip(scores.logp.sum(1), done.score_norm_sq.flatten(), strict=True):
        parts = torch.autograd.grad(row, list(twin.parameters()), retain_graph=True, allow_unused=True)
        slow = sum(float(part.double().square().sum()) for part in parts if part is not None)
        assert float(found) == pytest.approx(slow, rel=1e-4)


@pytest.mark.parametrize("method", ["clip+opob", "vcpo", "gspo+opob"])
def test_token_level_coefficients_take_the_same_way_as_row_constant_ones(method: str) -> None:
    """With score norms taken, the gradient is assembled or sent through a second forward; both must be the loss's."""
    trainer = small(method)
    batch = stale_batch(trainer)
    twin = copy.deepcopy(trainer.policy)
    done = trainer.learner.update(batch, 0)
    assert done.update is not None
    scores = score(twin, batch.flat())
    (-(done.update.coefficients.flatten(0, 1) * scores.logp).sum()).backward()
    expected = torch.cat([p.grad.flatten().double() for p in twin.parameters() if p.grad is not None])
    torch.testing.assert_close(unclipped(done.made.norm, gradients(trainer)), expected, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("k", [1, 3])
def test_gradient_at_update_t_uses_data_of_the_snapshot_at_t_minus_k(k: int) -> None:
    """Delayed consumption equals sampling update t's batch from the explicit weights theta_{t-k}."""
    trainer = small("tis", staleness=k)
    snapshots = []
    for update in range(6):
        snapshots.append(copy.deepcopy(trainer.policy.state_dict()))
        twin = small("tis", staleness=k)
        twin.policy.load_state_dict(snapshots[max(update - k, 0)])
        twin.step = max(update - k, 0)
        batch = sampled(twin, update)
        twin.policy.load_state_dict(snapshots[update])
        expected = twin.learner.update(batch, update)
        trainer.advance()
        assert torch.equal(gradients(trainer), gradients(twin))
        assert expected.made.norm == trainer.recorder.tables["steps.parquet"].columns["grad_norm"][-1]
    lags = trainer.recorder.tables["lags.parquet"].columns
    assert lags["lag"] == [min(t, k) for t in range(6)]
    assert lags["trajectories"] == [16] * 6


def test_a_wrong_lag_is_caught() -> None:
    trainer = small(staleness=2)
    trainer.advance()
    trainer.source.queue[1].version.fill_(1)
    with pytest.raises(AssertionError, match="realized lag"):
        trainer.advance()


def test_ess_scales_the_step_and_not_the_gradient() -> None:
    full, scaled = small("reinforce"), small("reinforce+ess")
    one, two = full.learner.update(stale_batch(full), 0), scaled.learner.update(stale_batch(scaled), 0)
    assert one.made.norm == two.made.norm
    assert two.made.scale < one.made.scale == 1.0
    unmoved = small()
    stale_batch(unmoved)
    origin = torch.cat([p.detach().flatten() for p in unmoved.policy.parameters()])
    moved = [torch.cat([p.detach().flatten() for p in t.policy.parameters()]) - origin for t in (full, scaled)]
    assert float(moved[1].norm() / moved[0].norm()) == pytest.approx(two.made.scale, rel=1e-3)


def test_evidence_that_is_not_finite_moves_nothing_and_three_in_a_row_end_the_cell() -> None:
    trainer = small("reinforce")
    trainer.advance()
    before = copy.deepcopy(trainer.policy.state_dict())
    for expected in ("", "", "nan"):
        assert trainer.status in ("", expected)
        trainer.source.generator.run = lambda *_: [poisoned(trainer)]  # type: ignore[method-assign]
        trainer.advance()
    assert trainer.status == "nan"
    assert trainer.recorder.tables["steps.parquet"].columns["nonfinite"] == ["", *["behavior_logp"] * 3]
    assert all(torch.equal(before[name], now) for name, now in trainer.policy.state_dict().items())


def test_lag_zero_has_weights_of_one() -> None:
    trainer = small("vcpo")
    for _ in range(3):
        trainer.advance()
    steps = trainer.recorder.tables["steps.parquet"].columns
    assert max(abs(v) for v in steps["log_weight_max"]) < 1e-4
    assert min(steps["ess_ratio"]) > 1 - 1e-6
    assert steps["lag_max"] == [0, 0, 0]


def test_a_gradient_that_is_not_finite_is_recorded_also_by_methods_that_act_on_it() -> None:
    for method in ("reinforce", "reinforce+gac"):
        trainer = small(method)
        trainer.advance()
        kept = trainer.learner.previous_gradient
        before = copy.deepcopy(trainer.policy.state_dict())
        hook = trainer.policy.head.weight.register_hook(lambda gradient: gradient * math.nan)
        for _ in range(3):
            trainer.advance()
        hook.remove()
        assert trainer.status == "nan"
        assert trainer.recorder.tables["steps.parquet"].columns["nonfinite"] == ["", *["gradient"] * 3]
        assert trainer.learner.previous_gradient is kept
        assert all(torch.equal(before[name], now) for name, now in trainer.policy.state_dict().items())


def test_the_learning_rate_warms_up_linearly_and_the_record_says_so() -> None:
    trainer = small("vcpo(baseline=group)", lr=1e-3, lr_warmup=4)
    for _ in range(6):
        trainer.advance()
    steps = trainer.recorder.tables[STEPS_FILE].columns
    ramp = [0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3]
    assert steps["lr"] == pytest.approx([rate * scale for rate, scale in zip(ramp, steps["step_scale"], strict=True)])
    assert trainer.learner.optimizer.param_groups[0]["lr"] == steps["lr"][-1]


def test_weight_decay_shrinks_all_weights_by_the_scaled_rate() -> None:
    """Beyond what the gradient does, which is the same at the first update; `vcpo` scales its rate."""
    plain, decayed = small("vcpo(baseline=group)", lr=1e-2), small("vcpo(baseline=group)", lr=1e-2, weight_decay=0.1)
    batch = stale_batch(plain)
    decayed.policy.load_state_dict(plain.policy.state_dict())
    before = copy.deepcopy(plain.policy.state_dict())
    scales = [trainer.learner.update(batch, 1).made.scale for trainer in (plain, decayed)]
    assert scales[0] == scales[1] < 1
    for name, weight in plain.policy.state_dict().items():
        lost = weight - decayed.policy.state_dict()[name]
        torch.testing.assert_close(lost, 1e-2 * scales[0] * 0.1 * before[name], rtol=1e-2, atol=3e-7)
