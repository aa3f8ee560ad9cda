"""How far the routers have moved: recorded while sampling, measured by the learner, and resumed to the bit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.training.routing import router_shift
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories, join

pytestmark = pytest.mark.usefixtures("no_evaluations")

NOISY = "fifo(router_noise=0.4)"
NEEDS = frozenset({"router_shift"})


def trainer(method: str = "rspo", **more: Any) -> Trainer:
    values = {"task": "chain", "policy": "moe", "prompts": 2, "responses": 4, "steps": 5, "staleness": 2, "lr": 3e-3}
    return build_trainer(CellConfig(method=method, seed=1, lr_warmup=1, **(values | more)))


def columns(run: Trainer) -> dict[str, list[Any]]:
    """Everything recorded but wall-clock times."""
    tables = run.recorder.tables.values()
    return {name: v for table in tables for name, v in table.columns.items() if not name.startswith("seconds")}


def finished(run: Trainer) -> Trainer:
    while not run.status:
        run.advance()
    return run


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
    run = finished(trainer())
    batch = run.source.next_batch(run.step).batch
    found = shift_of(run, batch)
    assert isinstance(run.policy, MoePolicy)
    torch.testing.assert_close(found[batch.mask], by_hand(run.policy, batch)[batch.mask], rtol=0, atol=1e-5)
    assert found[batch.mask].mean() > 0.01
    torch.testing.assert_close(shift_of(run, batch, tokens=60), found, rtol=0, atol=1e-5)


def test_at_lag_0_only_the_engine_moves_the_routers() -> None:
    clean, noisy = (trainer(staleness=0, regime=regime) for regime in ("fifo", NOISY))
    batch = clean.source.next_batch(0).batch
    assert shift_of(clean, batch).max() < 1e-5
    batch = noisy.source.next_batch(0).batch
    off, r3 = (shift_of(noisy, batch, replay)[batch.mask].mean() for replay in ("off", "r3"))
    assert 0 < r3 < off  # replay takes away the other inputs, and leaves the rounding of the logits


def test_without_noise_r2_and_r3_are_one_and_differ_from_off_at_a_lag() -> None:
    run = finished(trainer(replay="r2"))
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
def test_saved_and_resumed_is_the_same_run(tmp_path: Path, regime: str, replay: str) -> None:
    kind = {"regime": regime, "replay": replay}
    through = finished(trainer(**kind))
    first = trainer(**kind)
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    second = trainer(**kind)
    second.load(tmp_path)
    assert repr(columns(through)) == repr(columns(finished(second)))
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_fork_by_another_method_reads_what_the_parent_recorded(tmp_path: Path) -> None:
    """Its responses in flight go on without what their first tokens carry, and joined batches without what some do."""
    parent = trainer(regime="inflight")
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
