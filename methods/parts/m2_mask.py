"""M2PO's mask: reject the largest log-ratios until their second moment is within budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.ratio_mask import RatioMask
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.selection import first_crossing
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class SecondMoment(RatioMask):
    """Reject the tokens with the largest (log r)^2 until the mean of the rest is within `budget` (M2PO 2510.01161).

    Tokens tied at the bound go together: all stay where that is within the budget, else none, but for the smallest.
    `tokens=outward` looks only at tokens with A log r > 0 and rejects only among them (paper, Trinity-RFT);
    `tokens=all` looks at every token, for any advantage, and keeps at least one (AReaL).
    """

    name: ClassVar[str] = "m2-mask"
    summary: ClassVar[str] = "largest outward log-ratios rejected until their second moment is below 0.04"
    reference: ClassVar[str] = "M2PO 2510.01161"
    year: ClassVar[int] = 2025
    revision: ClassVar[int] = 2
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "reject the largest (log r)^2 until mean of the kept <= budget"
    differences: ClassVar[tuple[str, ...]] = (
        "three incompatible versions: authors' code clips (method m2po), paper and Trinity mask outward tokens,"
        " AReaL masks by prox/mu over all tokens: m2-mask(of=proximal,tokens=all)",
    )
    host: ClassVar[str] = "reinforce"
    budget: float = number(0.04, minimum=0)
    tokens: str = choice("outward", "all")

    def keep(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, T]`."""
        logs = ev.pair(self.of, self.anchor).raw
        inside = ev.rows.mask & (ev.advantage * logs > 0) if self.tokens == "outward" else ev.rows.mask
        squares = logs * logs
        bound = budget_bound(squares, inside, self.budget, at_least=int(self.tokens == "all"))
        at_most, below = inside & (squares <= bound), inside & (squares < bound)
        count = at_most.sum(BATCH_AXES).to(squares.dtype)
        over = torch.where(at_most, squares, 0.0).sum(BATCH_AXES) > self.budget * count
        tied_out = over & below.any(-1).any(-1).any(-1)
        return ~inside | torch.where(tied_out[..., None, None, None], below, at_most)


def budget_bound(value: Tensor, inside: Tensor, budget: float, at_least: int) -> Tensor:
    """`[..., 1, 1, 1]` the largest value to keep so that the mean of the kept ones is <= budget.

    Args:
        value: `[..., P, G, T]` non-negative.
        inside: `[..., P, G, T]` bool, the values that count.
        budget: Largest mean.
        at_least: Keep at least this many of the smallest.
    """

    def exceeded(_: Tensor, number: Tensor, total: Tensor) -> Tensor:
        return total > budget * number.to(total.dtype)

    leading = value.shape[:-3]
    bounds = []
    for one, mask in zip(
        value.reshape(-1, value.shape[-3:].numel()), inside.reshape(-1, value.shape[-3:].numel()), strict=True
    ):
        chosen = one[mask]
        ordered, place = first_crossing(chosen, exceeded)
        place = max(place, min(at_least, len(ordered)))
        bounds.append(ordered[place - 1] if place > 0 else value.new_full((), -torch.inf))
    return torch.stack(bounds).reshape(*leading, 1, 1, 1)
