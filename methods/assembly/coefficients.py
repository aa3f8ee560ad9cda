"""From the terms of a surrogate to the coefficients of an update, c = N ((A w u kept + k) keep + l)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.ess import ess_ratio
from vcpo_bench.methods.core.masking import as_number, gate
from vcpo_bench.methods.core.rows import Rows
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
    counted: Rows,
) -> Assembled:
    """The coefficients.

    Args:
        ev: The evidence; advantage and added weights are known.
        terms: The surrogate's terms.
        keep: `[..., P, G, 1|T]` bool of the masks that leave tokens in the denominators; None: there are none.
        factor: `[..., P, G, 1]` N.
        addends: `[..., P, G, T]` l of each regularizer, which no mask rejects, or None.
        counted: Rows and tokens that shares and the effective sample size refer to: those before any mask.
    """
    extra = None if terms.absorbs else ev.extra_weight
    free = ev.rows.mask_float
    free = free if terms.kept is None else free * as_number(terms.kept, free.dtype)
    acts = free if keep is None else free * as_number(keep, free.dtype)
    weight = None if terms.weight is None else gate(terms.weight, acts)
    if terms.score is not None:
        total = ev.rows.gate(terms.score, keep) * factor
    else:
        total = _weighted(ev.advantage if terms.absorbs else ev.weighted_advantage, weight, acts, factor)
    if terms.addend is not None:
        own = terms.addend if extra is None else terms.addend * extra
        total = total + ev.rows.gate(own, keep) * factor
    known = None if ev.nonfinite_tokens is None else ~ev.nonfinite_tokens
    for addend in addends:
        if addend is not None:
            total = total + ev.rows.gate(addend, known) * factor
    applied = _applied(weight, extra, acts)
    ess = torch.full_like(counted.tokens, torch.nan)
    if applied is not None:
        ess = ess_ratio(applied.sum(-1) / ev.rows.divisor, counted.weighted)
    return Assembled(total, _share_clipped(ev, terms, free, counted.tokens), ess)


def _weighted(advantage: Tensor, weight: Tensor | None, acts: Tensor, factor: Tensor) -> Tensor:
    """`[..., P, G, T]` N A u.

    Args:
        advantage: `[..., P, G, 1|T]`.
        weight: `[..., P, G, T]` u, 0 where it does not act; None: 1.
        acts: `[..., P, G, T]` zeros and ones: where it acts.
        factor: `[..., P, G, 1]` N.
    """
    if weight is None:
        return gate(advantage * factor + 0.0, acts)  # never -0.0
    return weight * (advantage * factor)


def _applied(weight: Tensor | None, extra: Tensor | None, acts: Tensor) -> Tensor | None:
    """`[..., P, G, T]` what multiplies the advantage, 0 where it does not act; None: nothing does."""
    if extra is None:
        return weight
    return gate(extra, acts) if weight is None else weight * extra


def _share_clipped(ev: EvidenceView, terms: Terms, free: Tensor, tokens: Tensor) -> Tensor:
    """Leading shape: the share of the tokens that the surrogate silenced or a cap holds.

    Args:
        ev: The evidence.
        terms: The surrogate's terms.
        free: `[..., P, G, T]` zeros and ones: tokens in play whose gradient the surrogate lets through.
        tokens: Leading shape: number of tokens that the share refers to.
    """
    if terms.kept is None and terms.capped is None:
        return torch.zeros_like(tokens)
    if terms.capped is not None:
        free = free * as_number(~terms.capped, free.dtype)
    return (ev.rows.tokens - free.sum(BATCH_AXES)) / tokens.clamp(min=1)
