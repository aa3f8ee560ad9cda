"""ESS of the token ratios."""

from typing import ClassVar

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class TokenEss(Signal):
    """ESS of the token ratios."""

    name: ClassVar[str] = "token_ess"
    summary: ClassVar[str] = "ESS of the token ratios is low: -log(token_ess_ratio)"
    role: ClassVar[Role] = "weights"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("token_ess_ratio",)
    rank: ClassVar[int] = 3

    def formula(self, steps: Updates) -> Array:
        """`[S]` -log of the ESS ratio."""
        return -np.log(column(steps, "token_ess_ratio"))
