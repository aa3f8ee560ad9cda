"""From the terms of a surrogate to the coefficients of an update, c = N ((A w u kept + k) keep + l)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.methods.core.batch import BATCH_AXES, ROW_AXES
from vcpo_bench.methods.core.ess import ess_ratio
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView


class Assembled(NamedTuple):
    """What `assemble` returns.

    Attributes:
        coefficients: `[..., P, G, T]`, exactly 0 at masked tokens.
        share_clipped: Leading shape: share of the tokens whose gradient the surrogate removed or whose weight a cap
            holds.
        ess_used: Leading shape: effective sample size of the weights that multiply the advantage; NaN: there are none.
    """

    coefficients: Tensor
    share_clipped: Tensor
    ess_used: Tensor


def assemble(
    ev: EvidenceView,
    terms: Terms,
    keep: Tensor | None,
    factor: Tensor,
    addends: Sequence[Tensor | None],
    tokens: Tensor,
    rows: Tensor | None,
) -> Assembled:
    """The coefficients.

    Args:
        ev: The evidence; advantage and added weights are known.
        terms: The surrogate's terms.
        keep: `[..., P, G, 1|T]` bool of the masks that leave tokens in the denominators; None: there are none.
        factor: `[..., P, G, 1]` N.
        addends: `[..., P, G, T]` l of each regularizer, which no mask rejects, or None. Without regularizers, and
            without an addend or score among the terms, nothing reads the weight afterwards: it may be overwritten
            where it is a buffer of `ev`.
        tokens: Leading shape: number of tokens that shares refer to.
        rows: `[..., P, G]` bool, the rows that count in the effective sample size; None: all.
    """
    extra, advantage = (None, ev.advantage) if terms.absorbs else (ev.extra_weight, ev.weighted_advantage)
    last = not addends and terms.addend is None and terms.score is None
    weight, sums, inside, clipped = _applied(ev, terms, keep, last)
    if weight is not None:
        ess_used = _ess_used(ev, sums if extra is None else (weight * extra).sum(-1), rows)
    elif extra is not None:
        ess_used = _ess_used(ev, ev.gated(extra, inside).sum(-1), rows)
    else:
        ess_used = torch.full_like(tokens, torch.nan)
    if terms.score is not None:
        total = ev.gate(terms.score, keep) * factor
    elif weight is not None:
        scale = advantage * factor
        total = torch.mul(weight, scale, out=weight if weight.dtype == scale.dtype and ev.keepable(weight) else None)
    else:
        total = ev.gated(advantage * factor + 0.0, inside, out=torch.empty_like(inside))  # never -0.0
    own = terms.addend if terms.addend is None or extra is None else terms.addend * extra
    if own is not None:
        total = total + ev.gate(own, keep) * factor
    known = None if ev.nonfinite_tokens is None else ~ev.nonfinite_tokens
    for addend in addends:
        if addend is not None:
            total = total + ev.gate(addend, known) * factor
    share_clipped = torch.zeros_like(tokens) if clipped is None else clipped / tokens.clamp(min=1)
    return Assembled(total, share_clipped, ess_used)


def _applied(
    ev: EvidenceView, terms: Terms, keep: Tensor | None, last: bool
) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
    """The weight, 0 where it does not act, and its row sums; where it acts, as zeros and ones; how many were clipped.

    Without a weight, its place is None and the sums are those of nothing.
    """
    weight, inside, free = terms.weight, ev.mask_float, None
    if terms.kept is not None:
        kept = as_number(terms.kept, inside.dtype)
        if weight is not None and weight.shape[-1] == kept.shape[-1] == 1:  # by row: no pass over the tokens
            weight, free = torch.where(terms.kept.bool(), weight, 0.0), kept
        else:
            inside = free = torch.mul(inside, kept, out=kept if kept.shape == inside.shape else ev.buffer())
    clipped = _clipped(ev, free, terms.capped)
    if keep is not None:
        inside = torch.mul(inside, as_number(keep, inside.dtype), out=ev.buffer())
    if weight is None:
        return None, ev.lengths, inside, clipped
    weight = ev.gated(weight, inside, out=_free_memory(ev, weight, inside, last))
    return weight, weight.sum(-1), inside, clipped


def _free_memory(ev: EvidenceView, weight: Tensor, inside: Tensor, last: bool) -> Tensor | None:
    """Where to put the weight that acts: over a tensor of no further use, which is still in the cache of the CPU."""
    if inside is not ev.mask_float:
        return inside
    return weight if last and ev.is_buffer(weight) else None


def _clipped(ev: EvidenceView, free: Tensor | None, capped: Tensor | None) -> Tensor | None:
    """Leading shape: how many tokens in play the surrogate silenced or a cap holds; None: it has neither.

    Args:
        ev: The evidence.
        free: `[..., P, G, 1]`, or `[..., P, G, T]` with 0 at masked tokens: zeros and ones, what is let through.
        capped: `[..., P, G, 1|T]` bool.
    """
    if capped is not None:
        uncapped = as_number(~capped, ev.mask_float.dtype)
        free = uncapped if free is None else free * uncapped
        free = free if free.shape[-1] == 1 else free * ev.mask_float
    if free is None:
        return None
    if free.shape[-1] == 1:
        return ev.tokens - (free.squeeze(-1) * ev.lengths).sum(ROW_AXES)
    return ev.tokens - free.sum(BATCH_AXES)


def _ess_used(ev: EvidenceView, sums: Tensor, rows: Tensor | None) -> Tensor:
    """Leading shape: effective sample size of the row means of weights whose row sums `[..., P, G]` these are."""
    return ess_ratio(sums / ev.divisor, rows)
