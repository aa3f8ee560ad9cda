"""What each trainer does around a custom loss, written from its documentation: inputs, calls, and division."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from hook_rows import B, HookRows
from torch import Tensor

CUTS = ([0, 1, 2, 3], [4, 5], [6, 7, 8])
"""Rows of each micro-batch."""


@dataclass
class LossOutputs:
    """As prime-rl documents it."""

    loss: Tensor
    metrics: dict[str, Tensor]


def in_prime_rl(loss: Callable[..., Any], rows: HookRows, method: str) -> Tensor:
    """One call per sequence; the sum over all is divided by the tokens that carry loss. Returns the gradient."""
    logp = rows.logp.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for row in range(B):
        inputs = SimpleNamespace(
            trainer_logprobs=logp[row],
            inference_logprobs=rows.behavior_logp[row],
            ref_logprobs=None,
            advantages=rows.advantage[row],
            loss_mask=rows.mask[row],
            loss_weights=None,
        )
        total = total + loss(inputs, method=method).loss
    (total / rows.mask.sum()).backward()
    assert logp.grad is not None
    return logp.grad


def slime_arguments(method: str, **changes: Any) -> SimpleNamespace:
    settings = {"vcpo_bench_method": method, "calculate_per_token_loss": False, "rollout_temperature": 1.0}
    return SimpleNamespace(**(settings | changes))


def slime_batch(rows: HookRows, which: list[int]) -> dict[str, Any]:
    """Lists of one tensor per sample; masks are integers."""
    lengths = [_length(rows, row) for row in which]

    def cut(values: Tensor) -> list[Tensor]:
        return [values[row, :length] for row, length in zip(which, lengths, strict=True)]

    masks = cut(rows.mask.int())
    return {
        "rows": which,
        "unconcat_tokens": [torch.zeros(length + 2, dtype=torch.long) for length in lengths],
        "total_lengths": [length + 2 for length in lengths],
        "response_lengths": lengths,
        "loss_masks": masks,
        "advantages": cut(rows.advantage),
        "rollout_log_probs": cut(rows.behavior_logp),
        "log_probs": cut(rows.proximal_logp),
        "rollout_mask_sums": torch.stack([mask.sum() for mask in masks]).float(),
    }


def _length(rows: HookRows, row: int) -> int:
    """Up to the last token that carries loss; a row without any has two tokens all the same."""
    places = rows.mask[row].nonzero()
    return int(places.max()) + 1 if len(places) else 2


def in_slime(loss: Callable[..., Any], rows: HookRows, method: str, replace_scores: Callable[[Any], None]) -> Tensor:
    """One call per micro-batch; the sum over all is divided by the number of rollouts. Returns the gradient.

    `replace_scores` is given the function that takes the place of slime's scoring of logits.
    """
    logp = rows.logp.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for which in CUTS:
        batch = slime_batch(rows, which)
        own = [logp[row, :length] for row, length in zip(which, batch["response_lengths"], strict=True)]
        replace_scores(lambda *_, own=own, **__: (torch.empty(0), {"log_probs": own}))
        value, reported = loss(slime_arguments(method), batch, torch.zeros(1, 1, 1), lambda x: x.sum())
        assert all(metric.dim() == 0 and not metric.requires_grad for metric in reported.values())
        total = total + value
    (total / B).backward()
    assert logp.grad is not None
    return logp.grad


def skyrl_config(reduction: str, **changes: Any) -> SimpleNamespace:
    names = ("tis_ratio_type", "sequence_mask_metric")
    bounds = ("outlier_token_is_threshold", "token_mask_is_threshold")
    off = dict.fromkeys([*names, *(f"{name}_{end}" for name in bounds for end in ("low", "high"))])
    correction = SimpleNamespace(**(off | changes))
    return SimpleNamespace(loss_reduction=reduction, max_seq_len=13, off_policy_correction=correction)


def divided(advantages: Tensor, mask: Tensor, config: SimpleNamespace) -> Tensor:
    """The advantages of a mini-batch as SkyRL hands them to its losses."""
    if config.loss_reduction == "token_mean":
        return advantages / mask.sum().clamp(min=1)
    if config.loss_reduction == "sequence_mean":
        return advantages / (len(advantages) * mask.sum(-1, keepdim=True).clamp(min=1))
    return advantages / (len(advantages) * config.max_seq_len)


def in_skyrl(loss: Callable[..., Any], rows: HookRows, config: Any, divide: Callable[..., Tensor] = divided) -> Tensor:
    """One call per micro-batch, on advantages divided before; the sum over all. Returns the gradient."""
    logp = rows.logp.clone().requires_grad_()
    mask = rows.mask.long()
    advantages = divide(torch.where(rows.mask, rows.advantage, 0.0), mask, config)
    total = torch.zeros((), dtype=torch.float64)
    for which in CUTS:
        value, metrics = loss(
            logp[which],
            rows.proximal_logp[which],
            advantages[which],
            config=config,
            loss_mask=mask[which],
            rollout_logprobs=rows.behavior_logp[which],
        )
        assert all(isinstance(metric, float) for metric in metrics.values())
        total = total + value
    total.backward()
    assert logp.grad is not None
    return logp.grad
