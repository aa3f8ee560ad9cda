"""Routes in training: recorded, replayed, counted by cause; how far routers moved; and both resumed to the bit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.policies.routed import UNROUTED
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.training.routing import differ, router_shift, scores_of
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories, join
from vcpo_bench.records import STEPS_FILE

pytestmark = pytest.mark.usefixtures("no_evaluations")

NOISY = "fifo(router_noise=0.4)"
NEEDS = frozenset({"router_shift"})
CHANGES = ("routers_changed", "routers_changed_engine", "routers_changed_lag", "tokens_rerouted")


def trainer(method: str = "clip", **more: Any) -> Trainer:
    values = {"task": "chain", "policy": "moe", "prompts": 2, "responses": 4, "steps": 5, "staleness": 2, "lr": 3e-3}
    return build_trainer(CellConfig(method=method, seed=1, lr_warmup=1, **(values | more)))


def columns(run: Trainer) -> dict[str, list[Any]]:
    """Everything recorded but wall-clock times."""
    return {
        name: values
        for table in run.recorder.tables.values()
        for name, values in table.columns.items()
        if not name.startswith("seconds")
    }


def steps(run: Trainer) -> dict[str, list[Any]]:
    return dict(run.recorder.tables[STEPS_FILE].columns)


def finished(run: Trainer) -> Trainer:
    while not run.status:
        run.advance()
    return run


@pytest.mark.parametrize(
    ("method", "regime", "replay"),
    [
        ("vcpo", NOISY, "r3"),
        ("clip", "inflight(router_noise=0.4)", "r2"),
        ("clip", "async(clock=virtual,router_noise=0.4)", "r3"),
    ],
)
def test_saved_and_resumed_is_the_same_run(tmp_path: Path, method: str, regime: str, replay: str) -> None:
    kind = {"regime": regime, "replay": replay, "staleness": 2}
    through = finished(trainer(method, **kind))
    first = trainer(method, **kind)
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    second = trainer(method, **kind)
    second.load(tmp_path)
    assert repr(columns(through)) == repr(columns(finished(second)))
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_changes_are_split_into_the_engines_part_and_that_of_lag() -> None:
    clean, noisy, late = (
        steps(finished(trainer(regime=regime, staleness=lag))) for regime, lag in (("fifo", 0), (NOISY, 0), ("fifo", 2))
    )
    assert all(value == 0 for name in CHANGES for value in clean[name])
    assert noisy["routers_changed"] == noisy["routers_changed_engine"]
    assert noisy["routers_changed_lag"] == [0.0] * 5
    assert min(noisy["routers_changed_engine"]) > 0.04
    assert min(noisy["tokens_rerouted"]) > min(noisy["routers_changed"])
    assert late["routers_changed"] == late["routers_changed_lag"]
    assert late["routers_changed_engine"] == [0.0] * len(late["step"])
    assert late["routers_changed_lag"][-1] > 0


def test_what_is_replayed_and_what_that_leaves() -> None:
    """At lag 0 `r2` is the learner's own choice, and only `r3` takes away what the engine changed."""
    ratios = {}
    for replay in ("off", "r2", "r3"):
        run = trainer(regime=NOISY, staleness=0, replay=replay)
        batch = run.source.next_batch(0).batch
        assert batch.routes is not None
        assert batch.learner_routes is not None
        assert differ(batch.routes.flatten(0, 1), batch.learner_routes.flatten(0, 1)).any()
        with torch.no_grad():
            logp = scores_of(run.policy, batch, run.learner.settings.replay).logp
        assert torch.equal(run.learner.logp(batch).flatten(0, 1), logp)
        done = run.learner.update(batch, 0)
        assert torch.equal(done.logp.flatten(0, 1), logp)  # what the method sees
        ratios[replay] = (logp - batch.behavior_logp.flatten(0, 1)).square().mean()
    assert ratios["r2"] == ratios["off"]
    assert 0 < ratios["r3"] < ratios["off"]


def test_at_a_lag_r2_replays_the_learner_of_then() -> None:
    run = finished(trainer(staleness=2, replay="r2"))
    batch = run.source.next_batch(run.step).batch
    assert batch.routes is not None
    assert torch.equal(batch.routes, batch.learner_routes)  # type: ignore[arg-type]  # there is no engine noise
    logp = [scores_of(run.policy, batch, replay).logp.detach() for replay in ("off", "r2", "r3")]
    assert torch.equal(logp[1], logp[2])
    assert not torch.equal(logp[0], logp[1])


@pytest.mark.parametrize("record", ["basic", "full"])
def test_pieces_of_a_batch_keep_their_routes(record: str) -> None:
    whole, cut = (trainer("vcpo", regime=NOISY, replay="r3", record=record) for _ in range(2))
    cut.learner.settings = replace(cut.learner.settings, micro_tokens=60)
    batch = whole.source.next_batch(0).batch
    one, other = whole.learner.update(batch, 0), cut.learner.update(batch, 0)
    torch.testing.assert_close(one.logp, other.logp, rtol=0, atol=1e-5)
    torch.testing.assert_close(one.score_norm_sq, other.score_norm_sq, rtol=1e-3, atol=0)
    assert one.routers == pytest.approx(other.routers)


def test_the_dense_policy_has_no_routes() -> None:
    run = trainer(policy="tiny", staleness=0, steps=1)
    batch = run.source.next_batch(0).batch
    assert batch.routes is batch.learner_routes is None
    finished(run)
    assert all(steps(run)[name] == [None] for name in CHANGES)


def test_unknown_routes_are_no_change() -> None:
    one = torch.tensor([[[[0, 1]], [[2, 3]], [[UNROUTED, UNROUTED]]]], dtype=torch.int8)
    other = torch.tensor([[[[0, 1]], [[2, 4]], [[5, 6]]]], dtype=torch.int8)
    assert differ(one, other).tolist() == [[[False], [True], [False]]]


def together(pieces: list[Piece]) -> Callable[..., Tensor]:
    return lambda values: gather(pieces, values)


def shift_of(run: Trainer, batch: Trajectories, replay: Any = "off", tokens: int = 0) -> Tensor:
    pieces = cut(batch, 1, tokens)
    found = router_shift(NEEDS, run.policy, pieces, replay, together(pieces))
    assert found is not None
    return found.view(batch.mask.shape)


def by_hand(policy: MoePolicy, batch: Trajectories) -> Tensor:
    """From the routers' inputs: every layer's logits at the position before each token."""
    seen: list[Tensor] = []
    hooks = [b.experts.router.register_forward_hook(lambda *call: seen.append(call[2])) for b in policy.layers()]
    prompts, responses, *_ = batch.flat()
    tokens = torch.cat([prompts.repeat_interleave(len(responses) // len(prompts), 0), responses], 1)
    with torch.no_grad():
        policy(tokens)
    for hook in hooks:
        hook.remove()
    before = prompts.shape[1] - 1
    assert batch.routes is not None
    assert batch.router_logp is not None
    routes, then = batch.routes.flatten(0, 1).long(), batch.router_logp.flatten(0, 1)
    total = torch.zeros(responses.shape)
    for row, t in batch.mask.flatten(0, 1).nonzero().tolist():
        for layer, logits in enumerate(seen):
            now = logits[row, before + t].softmax(-1).log()
            for k, expert in enumerate(routes[row, before + t, layer].tolist()):
                total[row, t] += (now[expert] - then[row, t, layer, k]).abs()
    return (total / (len(seen) * routes.shape[-1])).view(batch.mask.shape)


def test_it_is_the_mean_over_layers_and_the_samplers_experts() -> None:
    run = finished(trainer("rspo"))
    batch = run.source.next_batch(run.step).batch
    found = shift_of(run, batch)
    assert isinstance(run.policy, MoePolicy)
    torch.testing.assert_close(found[batch.mask], by_hand(run.policy, batch)[batch.mask], rtol=0, atol=1e-5)
    assert found[batch.mask].mean() > 0.01
    torch.testing.assert_close(shift_of(run, batch, tokens=60), found, rtol=0, atol=1e-5)


def test_at_lag_0_only_the_engine_moves_the_routers() -> None:
    clean, noisy = (trainer("rspo", staleness=0, regime=regime) for regime in ("fifo", NOISY))
    batch = clean.source.next_batch(0).batch
    assert shift_of(clean, batch).max() < 1e-5
    batch = noisy.source.next_batch(0).batch
    off, r3 = (shift_of(noisy, batch, replay)[batch.mask].mean() for replay in ("off", "r3"))
    assert 0 < r3 < off  # replay takes away the other inputs, and leaves the rounding of the logits


def test_without_noise_r2_and_r3_are_one_and_differ_from_off_at_a_lag() -> None:
    run = finished(trainer("rspo", replay="r2"))
    batch = run.source.next_batch(run.step).batch
    off, r2, r3 = (shift_of(run, batch, replay) for replay in ("off", "r2", "r3"))
    assert torch.equal(r2, r3)
    assert not torch.equal(off, r3)


def test_the_method_sees_it_and_others_neither_record_nor_measure_it() -> None:
    runs = {method: finished(trainer(method)) for method in ("rspo", "gmpo")}
    assert columns(runs["rspo"]) != columns(runs["gmpo"])
    same = finished(trainer("rspo(floor=1)"))  # gamma is 1 throughout: recording changes no bit of what is sampled
    assert repr(columns(same)) == repr(columns(runs["gmpo"]))
    batch = runs["gmpo"].source.next_batch(runs["gmpo"].step).batch
    assert batch.router_logp is None
    assert batch.routes is not None
    assert router_shift(frozenset(), runs["rspo"].policy, cut(batch), "off", together(cut(batch))) is None
    assert router_shift(NEEDS, runs["rspo"].policy, cut(batch), "off", together(cut(batch))) is None


@pytest.mark.parametrize(
    ("regime", "replay"),
    [
        (NOISY, "r3"),
        ("inflight(router_noise=0.4)", "r2"),
        ("inflight(cache=recompute)", "off"),
        ("async(clock=virtual,router_noise=0.4)", "r3"),
        ("random", "off"),
    ],
)
def test_what_was_recorded_of_routers_is_kept_by_a_resume(tmp_path: Path, regime: str, replay: str) -> None:
    kind = {"regime": regime, "replay": replay}
    through = finished(trainer("rspo", **kind))
    first = trainer("rspo", **kind)
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    second = trainer("rspo", **kind)
    second.load(tmp_path)
    assert repr(columns(through)) == repr(columns(finished(second)))
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_fork_by_another_method_reads_what_the_parent_recorded(tmp_path: Path) -> None:
    """Its responses in flight go on without what their first tokens carry, and joined batches without what some do."""
    parent = trainer("rspo", regime="inflight")
    for _ in range(3):
        parent.advance()
    parent.save(tmp_path)
    fork = trainer("rspo", regime="inflight")
    fork.load(tmp_path)
    tensors = {name for name in fork.source.tensors() if name.endswith("/router_logp")}
    assert any(name.startswith("draft/") for name in tensors)
    other = trainer("clip", regime="inflight")
    other.source.load(3, fork.source.tensors(), fork.source.state())
    assert not any(n.startswith("draft/") and n.endswith("/router_logp") for n in other.source.tensors())
    batch = other.source.next_batch(3).batch
    assert join(0, [batch, replace(batch, router_logp=None)]).router_logp is None
