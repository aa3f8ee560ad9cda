"""What a surrogate makes of the evidence."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(kw_only=True)
class Terms:
    """What a surrogate makes of the evidence; c = N (score keep + addend).

    Attributes:
        weight: `[..., P, G, 1|T]` u, with clipped tokens already zero; the score is then signal x weight.
        score: `[..., P, G, T]` given instead of being signal x weight.
        clipped: `[..., P, G, 1|T]` bool or zeros and ones, tokens whose gradient the surrogate removed.
        addend: `[..., P, G, T]` k, not multiplied by the advantage.
        kept: `[..., P, G, T]` zeros and ones, 1 where a token is in play and not clipped: given instead of
            `clipped` by a surrogate whose weight is already multiplied by it.
        absorbs: True when the weights added with `+` are already inside; they are then not multiplied again.
    """

    weight: Tensor | None = None
    score: Tensor | None = None
    clipped: Tensor | None = None
    addend: Tensor | None = None
    kept: Tensor | None = None
    absorbs: bool = False
