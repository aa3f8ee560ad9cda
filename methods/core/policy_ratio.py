"""The ratio of two policies, token by token and row by row."""

from __future__ import annotations

import math
from functools import cached_property

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.rows import Rows

_LARGEST_LOG = 1e30
"""Log-ratios of tokens beyond it count as it in sums over a row, which would overflow in float32."""


class PolicyRatio:
    """pi_of / pi_to at the tokens in play.

    Its tensors are shared by the parts of a method and must not be modified in place.

    Args:
        raw: `[..., P, G, T]` log pi_of - log pi_to, zero at masked tokens.
        rows: The rows and tokens in play.

    Attributes:
        raw: The same, not clamped.
    """

    def __init__(self, raw: Tensor, rows: Rows) -> None:
        self.raw = raw
        self._rows = rows
        self._least, self._most = (float(bound) for bound in torch.aminmax(raw))
        self._logs: dict[float, Tensor] = {}
        self._values: dict[float, Tensor] = {}

    @property
    def finite(self) -> bool:
        """Whether every log-ratio is a number."""
        return math.isfinite(self._least) and math.isfinite(self._most)

    def log(self, clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` the logarithm clamped to `+-clamp`."""
        if self.inside(-clamp, clamp):
            return self.raw
        if clamp not in self._logs:
            self._logs[clamp] = self.raw.clamp(-clamp, clamp)
        return self._logs[clamp]

    def value(self, clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` exp of `log`; one at masked tokens."""
        if clamp not in self._values:
            self._values[clamp] = torch.exp(self.log(clamp))
        return self._values[clamp]

    def inside(self, low: float, high: float) -> bool:
        """Whether every log-ratio is in [low, high]."""
        return self._least >= low and self._most <= high

    def outside(self, low: float, high: float) -> Tensor | None:
        """`[..., P, G, T]` bool, tokens whose log-ratio is not in [low, high], or None when there is none."""
        return None if self.inside(low, high) else (self.raw < low) | (self.raw > high)

    def beyond(self, clamp: float) -> Tensor | None:
        """`[..., P, G, T]` bool, tokens whose log-ratio the clamp changes, or None when there is none."""
        return self.outside(-clamp, clamp)

    @cached_property
    def row_log(self) -> Tensor:
        """`[..., P, G]` log of the sequence weight, the sum of the log-ratios over the tokens in play."""
        wild = not self.inside(-_LARGEST_LOG, _LARGEST_LOG)  # sums would overflow, to both infinities in one row
        return (self.raw.clamp(-_LARGEST_LOG, _LARGEST_LOG) if wild else self.raw).sum(-1)

    @cached_property
    def row_mean_log(self) -> Tensor:
        """`[..., P, G]` log of the length-normalized sequence ratio; 0 for rows without tokens."""
        return self.row_log / self._rows.divisor
