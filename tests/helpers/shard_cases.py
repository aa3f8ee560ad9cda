"""What both processes of a pair run: the same updates by one whole learner and by two sharded ones."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import hf_models
import torch
from torch.distributed.tensor import DTensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.loading import add_adapters
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.sharding.learner import ShardedLearner
from vcpo_bench.bench.sharding.ranks import Ranks, meeting_place
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import parse_method
from vcpo_bench.records.diagnostic import GradientDiagnostic
from vcpo_bench.records.steps import DIAGNOSTICS

P, G, L, T = 3, 4, 5, 7
_RANKS: list[Ranks] = []


def meet(port: int, number: int) -> None:
    """Join the pair; the first task of each process."""
    torch.set_num_threads(1)
    store = meeting_place(2, port)
    _RANKS.append(Ranks.join(store, number, 2, "cpu"))


def batch(index: int) -> Trajectories:
    """Stale trajectories of different lengths."""
    draws = torch.Generator().manual_seed(index)
    prompts = torch.randint(2, hf_models.VOCABULARY, (P, L), generator=draws)
    responses = torch.randint(2, hf_models.VOCABULARY, (P, G, T), generator=draws)
    mask = torch.arange(T) < torch.randint(2, T + 1, (P, G, 1), generator=draws)
    behavior = torch.where(mask, -4.6 + 0.5 * torch.randn(P, G, T, generator=draws), 0.0)
    reward = torch.randn(P, G, generator=draws).double()
    return Trajectories(index, prompts, responses, behavior, mask, reward, torch.full((P, G, T), index))


def compare(method: str, model: dict[str, Any], chunk: bool, settings: dict[str, Any]) -> dict[str, float]:
    """Largest relative differences between a whole learner and a sharded one, over three updates and three after a
    checkpoint that goes from one to the other."""
    one, two, three = (_learner(kind, method, model, chunk, settings) for kind in (Learner, *[ShardedLearner] * 2))
    found: dict[str, float] = {}
    for index in range(3):
        _update(one, two, index, found)
    kept = two.tensors()
    if _RANKS[0].number == 0:
        wanted = one.tensors()
        assert kept.keys() == wanted.keys()
        _note(found, checkpoint=max(_off(kept[name], wanted[name]) for name in wanted if kept[name].ndim))
    three.load(kept, True)
    for index in range(3, 6):
        _update(one, three, index, found)
    _sampling(one, three, found)
    return found


def _learner(kind: type[Learner], method: str, model: dict[str, Any], chunk: bool, settings: dict[str, Any]) -> Learner:
    network, dtype = hf_models.network(**model), torch.bfloat16 if settings.get("half") else torch.float32
    if rank := settings.get("lora"):
        add_adapters(network, rank)
        for name, parameter in network.named_parameters():
            if "lora_B" in name:  # else the other half has no gradient
                torch.nn.init.normal_(parameter, std=0.1)
            if not parameter.requires_grad:
                parameter.data = parameter.data.to(dtype)
    policy = CausalPolicy(network, hf_models.PAD, dtype, recompute=settings.get("recompute", False))
    if chunk:
        policy.chunked_head.vocabulary.chunk_bytes = 4 * hf_models.VOCABULARY * 5
    more: dict[str, Any] = {"ranks": _RANKS[0]} if kind is ShardedLearner else {}
    how = LearnerSettings(1e-2, micro_tokens=settings.get("micro_tokens", 0))
    if settings.get("full"):
        diagnostics = [one for one in DIAGNOSTICS.values() if isinstance(one, GradientDiagnostic)]
        how = replace(how, diagnostics=diagnostics, measure_norms=True)
    matrices = [weakref.ref(p) for p in policy.parameters() if p.ndim == 2 and p.requires_grad]
    made = kind(policy, parse_method(method), how, **more)
    gc.collect()
    left = [one for one in matrices if (found := one()) is not None and found.requires_grad]
    assert len(left) == (0 if kind is ShardedLearner else len(matrices)), "whole matrices stay in memory"
    made.optimizer.param_groups[0]["eps"] = 1e-3  # else the sign of a gradient that is all rounding decides a step
    return made


def _update(one: Learner, two: Learner, index: int, found: dict[str, float]) -> None:
    given = batch(index)
    x, y = one.update(given, index), two.update(given, index)
    assert x.nonfinite == y.nonfinite == ""
    whole = {name: _whole(p) for name, p in two.policy.named_parameters()}
    gradients = {name: _whole(p.grad) for name, p in two.policy.named_parameters() if p.grad is not None}
    own = dict(one.policy.named_parameters())
    assert all(isinstance(p, DTensor) for p in two.policy.parameters())
    assert gradients.keys() == {name for name, p in own.items() if p.grad is not None}
    _note(found, weights=max(_off(whole[name], p) for name, p in own.items()))
    scale = max(float(p.grad.abs().max()) for p in own.values() if p.grad is not None)
    worst = max(float((gradient - own[name].grad).abs().max()) for name, gradient in gradients.items())
    _note(found, gradient=worst / scale)
    _compare_steps(x, y, found)


def _compare_steps(x: LearnerStep, y: LearnerStep, found: dict[str, float]) -> None:
    assert x.update is not None
    assert y.update is not None
    _note(found, logp=_off(y.logp, x.logp), entropy=_off(y.entropy, x.entropy))
    _note(found, coefficients=_off(y.update.coefficients, x.update.coefficients))
    assert x.update.metrics.keys() == y.update.metrics.keys()
    numbers = {"grad_norm": (x.made.norm, y.made.norm), "step_scale": (x.made.scale, y.made.scale)}
    numbers |= {name: (value, y.made.measured[name]) for name, value in x.made.measured.items()}
    for name, (wanted, got) in numbers.items():
        _note(found, **{name: _off(torch.tensor(got), torch.tensor(wanted))})
    assert (x.score_norm_sq is None) == (y.score_norm_sq is None)
    if x.score_norm_sq is not None and y.score_norm_sq is not None:
        _note(found, score_norms=float(((y.score_norm_sq - x.score_norm_sq) / x.score_norm_sq).abs().max()))


def _sampling(one: Learner, two: Learner, found: dict[str, float]) -> None:
    """Batches that can and cannot be divided evenly, and one with fewer prompts than processes."""
    for prompts in (4, 3, 1):
        draws = torch.rand(prompts * 2, T, dtype=torch.float64, generator=torch.Generator().manual_seed(prompts))
        asked = batch(prompts).prompts.repeat(2, 1)[:prompts]
        greedy = torch.tensor([True, False]).repeat(prompts)
        x, y = (each.policy.sample(Draw(asked, draws, hf_models.EOS, greedy)) for each in (one, two))
        if one.policy.dtype != torch.float32:
            continue
        assert torch.equal(x.responses, y.responses)
        assert torch.equal(x.mask, y.mask)
        _note(found, sampled_logp=_off(y.logp, x.logp))


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    assert isinstance(tensor, DTensor)
    return tensor.full_tensor().detach()


def _off(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Largest difference, relative to the largest number."""
    if bool(torch.isnan(wanted).any()):
        return 0.0 if torch.equal(torch.isnan(got), torch.isnan(wanted)) else float("inf")
    got, wanted = got.detach(), wanted.detach()
    return float((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-12))


def _note(found: dict[str, float], **values: float) -> None:
    for name, value in values.items():
        found[name] = max(found.get(name, 0.0), value)
