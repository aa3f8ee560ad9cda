"""Rows for the loss hooks of other trainers, the gradient that a method must give there, and which methods to try."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vcpo_bench.adapters.hook import Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.methods import METHODS, Batch, Method, method_names, parse_method, part_names

B, T = 9, 7
SUFFIXES = (
    "+token-mean",
    "+seq-mean-token-mean(empty=counted)",
    "+seq-mean-token-sum(empty=counted)",
    "+seq-mean-token-sum-norm(horizon=11,empty=counted)",
)
VARIANTS = (
    "reinforce+kl", "reinforce+opsm", "clip+tis(cap=3)", "cispo+icepop", "decoupled(proximal=behavior)",
    "rec(mask=one-side)", "tis(level=token)", "clip(high=0.28)+veto",
)  # fmt: skip


@dataclass(frozen=True)
class HookRows:
    """Rows of one optimizer step, `[B, T]` each; rows 3 and 8 have no token that carries loss.

    Attributes:
        logp: Under the current policy.
        behavior_logp: Under the sampler's.
        proximal_logp: Under the policy at the first update on the batch.
        advantage: The trainer's, one number per row.
        mask: Bool; lengths differ, and one token inside a row is masked.
    """

    logp: Tensor
    behavior_logp: Tensor
    proximal_logp: Tensor
    advantage: Tensor
    mask: Tensor


def hook_rows() -> HookRows:
    """From nearly on policy to far off it."""
    generator = torch.Generator().manual_seed(0)
    spread = torch.logspace(-2, 0.3, B, dtype=torch.float64).unsqueeze(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    logp = -0.1 - 3 * torch.rand(B, T, generator=generator, dtype=torch.float64)
    off = spread * normal(B, T)
    mask = torch.arange(T) < torch.randint(2, T + 1, (B, 1), generator=generator)
    mask[0, 1] = False
    mask[[3, 8]] = False
    return HookRows(
        logp=logp,
        behavior_logp=(logp + off).clamp(max=-1e-3),
        proximal_logp=(logp + 0.4 * off).clamp(max=-1e-3),
        advantage=normal(B, 1).expand(B, T).contiguous(),
        mask=mask,
    )


def wanted_gradient(method: Method, rows: HookRows) -> Tensor:
    """`[B, T]` gradient of the loss by the log-probabilities: the method on the whole step at once."""
    batch = Batch.from_rows(
        logp=rows.logp,
        behavior_logp=rows.behavior_logp,
        mask=rows.mask,
        reward=torch.zeros(B, dtype=torch.float64),
        group=torch.arange(B) // 3,
        advantage=rows.advantage,
        proximal_logp=rows.proximal_logp,
    )
    return -batch.to_rows(method(batch).coefficients)


def relative_error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-12))


def poisoned(rows: HookRows) -> HookRows:
    """What stands at masked tokens is not a number, as nothing may read it."""
    values = {
        name: torch.where(rows.mask, getattr(rows, name), torch.nan) for name in ("behavior_logp", "proximal_logp")
    }
    return replace(rows, advantage=torch.where(rows.mask, rows.advantage, 1e30), **values)


def supported(hook: Hook, suffixes: tuple[str, ...] = SUFFIXES) -> list[str]:
    """Every expression that a hook takes, of all methods and parts as they are and with each suffix."""
    names = [name for name in part_names() if name not in method_names()]
    parts = [f"reinforce+{name}" for name in names if METHODS.kinds[name].slot != "aggregation"]
    plain = [*method_names(), *parts, *VARIANTS]
    tried = [*plain, *(text + suffix for text in plain for suffix in suffixes)]
    return [text for text in tried if not any(reasons_against(parse_method(text), hook))]
