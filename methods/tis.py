"""Truncated importance sampling of whole sequences."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.method import WeightMethod
from vcpo_bench.methods.params import choice, number


@dataclass(frozen=True, kw_only=True)
class Tis(WeightMethod):
    """c = A min(u, cap), u the product of token ratios of the row (``level=sequence``), detached.

    ``level=token`` truncates every token ratio, ``level=geometric`` the length-normalised product. The logarithm of
    a product is clamped as a whole. Unbiased only with ``seq-mean-token-sum`` and before truncation.
    """

    name: ClassVar[str] = "tis"
    summary: ClassVar[str] = "detached product of token ratios per row, capped at 8"
    reference: ClassVar[str] = "Yao et al. 2025; VCPO 2602.17616"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A min(w, cap), w = prod_t r_t"
    differences: ClassVar[tuple[str, ...]] = (
        "cap: 2 verl, 8 VCPO, 5 SkyRL, 3 TRL",
        "'sequence' is the geometric mean in AReaL, open-instruct and ms-swift (level=geometric)",
    )
    paper_parts: ClassVar[str] = "grpo(eps=1e-6,std=sample)"
    level: str = choice("sequence", "token", "geometric")
    cap: float = number(8.0, minimum=0)

    def log_weight(self, ev: Evidence) -> Tensor:
        """``[..., P, G, 1|T]`` clamped logarithm of the ratio at this level, before truncation."""
        if self.level == "token":
            return ev.log_ratio(self.of, self.anchor, self.clamp)
        geometric = self.level == "geometric"
        row = (ev.row_mean_log_ratio if geometric else ev.row_log_ratio)(self.of, self.anchor)
        return row.clamp(-self.clamp, self.clamp).unsqueeze(-1)

    def weight(self, ev: Evidence) -> Tensor:
        """Truncated in log space, so that no cap meets an infinity."""
        top = math.log(self.cap) if self.cap > 0 else -math.inf
        return self.log_weight(ev).clamp(max=top).exp_()
