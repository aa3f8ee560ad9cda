"""Methods in loss hooks that see a few rows, with the trainer's advantage, before the trainer divides what they return.

Such a hook returns a sum over its rows, and the trainer divides the sum of all hooks by the tokens, or by the rows, of
the whole step. A method is exact there if what one row gets depends on nothing but the row, up to this division.
Whatever is not is refused when the method is bound, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, parse_method

TOKEN_SUM = parse_method("reinforce+token-sum").parts.aggregation


class Weighed(NamedTuple):
    """What a method makes of some rows.

    Attributes:
        coefficients: `[B, T]`: the hook's loss is `-sum coefficients * logp`, before the trainer's division. Exactly 0
            at masked tokens; all 0 if the evidence of these rows is not finite.
        metrics: `share_clipped`, `share_masked` (of the tokens that carry loss) and `not_finite`.
    """

    coefficients: Tensor
    metrics: dict[str, float]


@dataclass(frozen=True)
class RowLocal:
    """A method bound to a hook; `bind` makes one."""

    method: Method
    hook: Hook

    @cached_property
    def _undivided(self) -> Method:
        """The same without the division by all tokens; that by rows is left out by giving each row a batch."""
        if self.hook.divisor is Divisor.ROWS:
            return self.method
        others = tuple(part for part in self.method.extras if part.slot != "aggregation")
        return replace(self.method, extras=(*others, TOKEN_SUM))

    def weigh(
        self,
        *,
        logp: Tensor,
        behavior_logp: Tensor,
        advantage: Tensor,
        mask: Tensor,
        proximal_logp: Tensor | None = None,
    ) -> Weighed:
        """The coefficients of some rows.

        Args:
            logp: `[B, T]` log-probability of each token under the current policy; with gradient history or without.
            behavior_logp: `[B, T]` the same under the policy that sampled it.
            advantage: `[B, T]` the trainer's.
            mask: `[B, T]` True where a token carries loss; whatever stands elsewhere in the others is not read.
            proximal_logp: `[B, T]` under the policy at the first update on this batch, where the method needs it.
        """
        kept = mask.bool()

        def separate(value: Tensor) -> Tensor:
            return _one_batch_per_row(torch.where(kept, _wide(value.detach()), 0))

        own, rows = separate(logp), _one_batch_per_row(kept)
        anchor = proximal_logp if "proximal_logp" in self.method.needs else None
        batch = Batch(
            logp=own,
            behavior_logp=separate(behavior_logp),
            advantage=separate(advantage),
            proximal_logp=None if anchor is None else separate(anchor),
            mask=rows,
            valid=torch.ones_like(rows[..., 0]),
            reward=torch.zeros_like(own[..., 0]),
            version=torch.zeros_like(rows, dtype=torch.int64),
            now=0,
        )
        try:
            update = self._undivided(batch)
        except NonFiniteEvidence:
            return _nothing(kept)
        coefficients = update.coefficients.flatten(0, 2)
        if not bool(torch.isfinite(coefficients).all()):
            return _nothing(kept)
        tokens = kept.sum(-1)
        shares = {
            name: float((update.metrics[name] * tokens).sum() / tokens.sum().clamp(min=1))
            for name in ("share_clipped", "share_masked")
        }
        return Weighed(coefficients, {**shares, "not_finite": 0.0})


def loss_of(weighed: Weighed, logp: Tensor) -> Tensor:
    """The hook's loss, `-sum c log pi`, with the gradient of the method."""
    counted = weighed.coefficients != 0
    return -(weighed.coefficients * torch.where(counted, logp, 0.0)).sum()


def _one_batch_per_row(value: Tensor) -> Tensor:
    """`[B, T]` to `[B, 1, 1, T]`: independent batches of one prompt with one response."""
    return value[:, None, None, :]


def _wide(value: Tensor) -> Tensor:
    return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value


def _nothing(mask: Tensor) -> Weighed:
    return Weighed(
        torch.zeros(mask.shape, device=mask.device), {"share_clipped": 0.0, "share_masked": 0.0, "not_finite": 1.0}
    )


@cache
def bind(method: str | Method, hook: Hook) -> RowLocal:
    """A method for a hook, bound once: trainers call their hooks for every micro-batch.

    Raises:
        UsageError: The expression is wrong, or the method would not be exact there: with the first reason.
    """
    parsed = parse_method(method) if isinstance(method, str) else method
    for reason in reasons_against(parsed, hook):
        raise UsageError(f"{parsed.canonical} in {hook.trainer}: {reason}")
    return RowLocal(parsed, hook)
