"""Methods in loss hooks that see a few rows, with the trainer's advantage, before the trainer divides what they return.

Such a hook returns a sum over its rows, and the trainer divides the sum of all hooks by the tokens, or by the rows, of
the whole step. A method is exact there if what one row gets depends on nothing but the row, up to this division.
Whatever is not is refused when the method is bound, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.adapters.locality import Locality, Scope, locality_of
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, parse_method
from vcpo_bench.methods.core.interfaces import Aggregation

TOKEN_SUM = parse_method("reinforce+token-sum").aggregation_part


class Divisor(Enum):
    """What a trainer divides the sum of all hooks by."""

    TOKENS = "the number of tokens that carry loss"
    ROWS = "the number of rows"

    @property
    def parts(self) -> str:
        """The aggregations that come out of it, to be written behind a method."""
        if self is Divisor.TOKENS:
            return "+token-mean"
        return "+seq-mean-token-mean(empty=counted) or +seq-mean-token-sum(empty=counted)"


@dataclass(frozen=True, kw_only=True)
class Hook:
    """What one trainer's loss hook offers.

    Attributes:
        trainer: Name of the trainer.
        divisor: What the trainer divides by afterwards.
        proximal: Whether log-probabilities of the policy at the first update on a batch arrive.
        scaled_advantage: The division is made beforehand, on the advantage, by a number that the hook cannot know.
    """

    trainer: str
    divisor: Divisor
    proximal: bool = False
    scaled_advantage: bool = False


class Weighed(NamedTuple):
    """What a method makes of some rows.

    Attributes:
        coefficients: `[B, T]`: the hook's loss is `-sum coefficients * logp`, before the trainer's division. Exactly 0
            at masked tokens; all 0 if the evidence of these rows is not finite.
        metrics: `share_clipped`, `share_masked` and `not_finite`, means over the rows.
    """

    coefficients: Tensor
    metrics: dict[str, float]


@dataclass(frozen=True)
class RowLocal:
    """A method bound to a hook; `bind` makes one.

    Attributes:
        method: The method.
        hook: The hook.
    """

    method: Method
    hook: Hook

    @cached_property
    def _undivided(self) -> Method:
        """The same without the division by all tokens; that by rows is left out by giving each row a batch."""
        if self.hook.divisor is Divisor.ROWS:
            return self.method
        others = tuple(part for part in self.method.extras if part.slot != "aggregation")
        return replace(self.method, extras=(*others, TOKEN_SUM))

    @torch.no_grad()
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
            return _one_batch_per_row(torch.where(kept, value, 0))

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
        shares = {name: float(update.metrics[name].mean()) for name in ("share_clipped", "share_masked")}
        return Weighed(coefficients, {**shares, "not_finite": 0.0})


def loss_of(weighed: Weighed, logp: Tensor) -> Tensor:
    """The hook's loss, `-sum c log pi`, with the gradient of the method."""
    counted = weighed.coefficients != 0
    return -(weighed.coefficients * torch.where(counted, logp, 0.0)).sum()


def _one_batch_per_row(value: Tensor) -> Tensor:
    """`[B, T]` to `[B, 1, 1, T]`: independent batches of one prompt with one response."""
    return value.detach()[:, None, None, :]


def _nothing(mask: Tensor) -> Weighed:
    return Weighed(
        torch.zeros(mask.shape, device=mask.device), {"share_clipped": 0.0, "share_masked": 0.0, "not_finite": 1.0}
    )


def bind(method: str | Method, hook: Hook) -> RowLocal:
    """A method for a hook.

    Args:
        method: A method expression, or a method.
        hook: What the trainer offers.

    Raises:
        UsageError: The expression is wrong, or the method would not be exact there: with the first reason.
    """
    parsed = parse_method(method) if isinstance(method, str) else method
    for reason in reasons_against(parsed, hook):
        raise UsageError(f"{parsed.canonical} in {hook.trainer}: {reason}")
    return RowLocal(parsed, hook)


def reasons_against(method: Method, hook: Hook) -> Iterator[str]:
    """Why a method is not exact in a hook; nothing if it is."""
    locality = locality_of(method)
    yield from _of_evidence(locality, hook)
    yield from _of_the_step(locality)
    yield from _of_the_advantage(method, hook)
    yield from _of_the_division(method, hook)


def _of_evidence(locality: Locality, hook: Hook) -> Iterator[str]:
    if locality.loss > Scope.ROW:
        yield f"it needs {locality.loss.phrase}, and its loss hook sees single rows; use the adapter of TRL or verl"
    for name in sorted(locality.reads):
        yield f"it reads the {name} of each row, which does not reach the loss hook; use the adapter of TRL or verl"
    missing = locality.needs - ({"proximal_logp"} if hook.proximal else set())
    if missing:
        yield f"it needs {', '.join(sorted(missing))}, which the loss hook does not hand over"
    if locality.entropy_bonus:
        yield "its loss has a term in the entropy, which is not differentiable in the loss hook"


def _of_the_step(locality: Locality) -> Iterator[str]:
    if locality.scales_step:
        yield "it scales the learning rate by a number that all rows decide, and a loss hook cannot change the step"
    if locality.acts_on_gradient:
        yield "it changes the whole gradient, which a loss hook does not see"
    if locality.measures_drift:
        yield "it measures how far the weights have moved, which a loss hook does not see"
    if locality.state:
        yield "it keeps state from update to update, which a loss hook has no place for"


def _of_the_advantage(method: Method, hook: Hook) -> Iterator[str]:
    added = [part for part in method.extras if part.slot == "baseline"]
    if added:
        yield f"the advantage is the trainer's: configure it there and leave out +{added[0].name}"
    if hook.scaled_advantage and not scales_with_advantage(method):
        yield (
            "advantages arrive divided by a number of the whole mini-batch, and its coefficients are not proportional "
            "to them"
        )


def _of_the_division(method: Method, hook: Hook) -> Iterator[str]:
    if not _comes_out(method.aggregation_part, hook.divisor):
        yield (
            f"the trainer divides by {hook.divisor.value}, from which {method.aggregation_part.text()} cannot be made "
            f"exactly; write {hook.divisor.parts}"
        )
    dropping = [mask.name for mask in method.masks if mask.rejected == "dropped"]
    if hook.divisor is Divisor.TOKENS and (dropping or method.nonfinite == "drop"):
        names = ", ".join(dropping) or "nonfinite=drop"
        yield f"the trainer counts all tokens, also those that {names} drops; use rejected=counted or nonfinite=zero"


def _comes_out(aggregation: Aggregation, divisor: Divisor) -> bool:
    """Whether the trainer's division makes this aggregation of the sum over rows."""
    if divisor is Divisor.TOKENS:
        return aggregation.name == "token-mean"
    if aggregation.name == "luspo-mean":
        return True
    settings = {name: getattr(aggregation, name, None) for name in ("empty", "over", "horizon")}
    return (
        aggregation.name in ("seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")
        and settings["empty"] == "counted"
        and settings["over"] in (None, "rows")
        and settings["horizon"] != 0
    )


def scales_with_advantage(method: Method) -> bool:
    """Whether twice the advantage makes twice the coefficients, measured on rows from nearly on policy to far off."""
    generator = torch.Generator().manual_seed(0)
    shape, spread = (64, 1, 1, 8), torch.logspace(-2, 0.5, 64, dtype=torch.float64)[:, None, None, None]
    logp = -0.1 - 3.0 * torch.rand(shape, generator=generator, dtype=torch.float64)
    noise = torch.randn((2, *shape), generator=generator, dtype=torch.float64)
    batch = Batch(
        logp=logp,
        behavior_logp=(logp + spread * noise[0]).clamp(max=-1e-3),
        proximal_logp=(logp + 0.5 * spread * noise[0]).clamp(max=-1e-3),
        mask=torch.ones(shape, dtype=torch.bool),
        valid=torch.ones(shape[:-1], dtype=torch.bool),
        reward=torch.zeros(shape[:-1], dtype=torch.float64),
        version=torch.zeros(shape, dtype=torch.int64),
        now=0,
        advantage=noise[1][..., :1].expand(shape),
    )
    assert batch.advantage is not None
    one = method(batch).coefficients
    return all(
        torch.allclose(method(replace(batch, advantage=factor * batch.advantage)).coefficients, factor * one, rtol=1e-6)
        for factor in (1 / 256, 2.0)
    )
