"""SAT: PPO's clip, tighter on the outward side for the batch's most mismatched tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.clipping import clip_bounds, differentiated
from vcpo_bench.methods.core.masking import within
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Sat(Clip):
    """PPO's clip with the ends 1 - k low and 1 + k high, k = 1 up to a quantile of d = |log r| (SAT 2607.18722).

    q is the quantile of d over the tokens of the batch. Beyond it k = 1 / (1 + (d/q)^exponent), a Hill curve with its
    half at q. Only the end on the token's own side moves, and only outward updates meet it, so that pulling back stays
    free. Where q is beyond log(1 + high), as at a large lag, this is PPO's clip: its own ends are nearer. Written from
    descriptions of the paper; the authors' code was not available.
    """

    name: ClassVar[str] = "sat"
    summary: ClassVar[str] = "token clip, up to ten times tighter outward for the tenth of tokens farthest off"
    reference: ClassVar[str] = "SAT 2607.18722"
    year: ClassVar[int] = 2026
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r, 0 outside 1 - k low, 1 + k high on the outward side; k = 1/(1+(d/q)^2) for d > q"
    differences: ClassVar[tuple[str, ...]] = (
        "which Hill curve is read from descriptions: half at the quantile, hence a jump from 1 to 1/2 there",
        "the quantile is that of a micro-batch in the authors' description; here of the whole batch",
    )
    quantile: float = number(0.9, minimum=0, maximum=1)
    exponent: float = number(2.0, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The ratio with clipped tokens at zero."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        tightness = self._tightness(ev)
        below, above = clip_bounds(ev.advantage, -self.low, self.high, ratio.dtype)
        kept = within(ratio - 1, below * tightness, above * tightness)
        return differentiated(ratio, kept, ev.pair("current", self.anchor).beyond(self.clamp))

    def _tightness(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]` k in (0, 1]."""
        size = ev.log_ratio("current", self.anchor, self.clamp).abs()
        bound = quantile_of(size, ev.rows.mask, self.quantile)
        hill = 1 / (1 + (size / bound.clamp(min=torch.finfo(size.dtype).tiny)) ** self.exponent)
        return torch.where((size > bound) & (bound > 0), hill, 1.0)


def quantile_of(value: Tensor, mask: Tensor, share: float) -> Tensor:
    """`[..., 1, 1, 1]` quantile over the masked-in tokens of each batch; 0 where there are none.

    Linear between order statistics, as `torch.quantile`, which takes no more than 16 million elements.
    """
    size = value.shape[-3:].numel()
    pairs = zip(value.reshape(-1, size), mask.reshape(-1, size), strict=True)
    found = [_quantile(one[inside], share) for one, inside in pairs]
    return torch.stack(found).reshape(*value.shape[:-3], 1, 1, 1)


def _quantile(value: Tensor, share: float) -> Tensor:
    if len(value) == 0:
        return value.new_zeros(())
    place = share * (len(value) - 1)
    low = min(int(place), len(value) - 1)
    high = min(low + 1, len(value) - 1)
    first, second = value.kthvalue(low + 1).values, value.kthvalue(high + 1).values
    return torch.lerp(first, second, place - low)
