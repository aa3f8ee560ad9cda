"""What a surrogate makes of the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.lazy_torch import Tensor


@dataclass(kw_only=True)
class Terms:
    """The terms of c = N (A w u kept + k); A the advantage, w the product of the weights added with `+`.

    Attributes:
        weight: `[..., P, G, 1|T]` u; None: 1.
        kept: `[..., P, G, 1|T]` bool, or zeros and ones: where the surrogate lets the gradient of u through. None:
            everywhere. What u is elsewhere does not matter.
        capped: `[..., P, G, 1|T]` bool: where a cap holds a detached u, which still acts. None: nowhere. It changes
            no coefficient; `share_clipped` counts these tokens with those that `kept` leaves out.
        addend: `[..., P, G, T]` k, which the advantage does not multiply.
        score: `[..., P, G, 1|T]` in place of A w u kept, where that is not a product token by token.
        absorbs: True when u contains w, which is then not multiplied again.
    """

    weight: Tensor | None = None
    kept: Tensor | None = None
    capped: Tensor | None = None
    addend: Tensor | None = None
    score: Tensor | None = None
    absorbs: bool = False
