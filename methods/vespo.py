"""Variational sequence-level soft policy optimization."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.ratios import judged_by
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice, number

_LOG_FLOOR = math.log(1e-8)


@dataclass(frozen=True, kw_only=True)
class Vespo(RatioMethod):
    """c = A phi(w), phi(w) = w^k exp(lam (1 - w)), detached, of the sequence weight w (VESPO 2602.10693).

    phi(1) = 1. Rows with A >= 0 use (k_pos, lam_pos), rows with A < 0 (k_neg, lam_neg). Token log-ratios and their
    sum are clamped, and log w is at least log 1e-8, as in the authors' code. Each token is judged by its own
    advantage; `sign=first` is the authors' code, which reads column 0 even where that token is masked. Weights
    added with `+` multiply w token by token instead of c. `vespo:paper` is the paper's eq. 20: the gradient
    E_mu[phi(w) A d log pi(y)] of whole rows, A = R - mean_G R.
    """

    name: ClassVar[str] = "vespo"
    summary: ClassVar[str] = "smooth, detached gate on the sequence weight, harsher for A < 0"
    reference: ClassVar[str] = "VESPO 2602.10693"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A w^k exp(lam (1 - w)), (k, lam) = (2, 3) for A>=0, (3, 2) for A<0"
    differences: ClassVar[tuple[str, ...]] = (
        "authors' docstring names (2, 1.5) and (4, 2.5); their code and TRL use (2, 3) and (3, 2)",
        "authors' code takes the sign of A from the first token of the row, even when it is masked",
        "authors' scripts: grpo(eps=1e-6,std=sample)+token-mean; the paper's gradient has neither std nor length",
    )
    paper_parts: ClassVar[str] = "group-mean+seq-mean-token-sum"
    k_pos: float = number(2.0, minimum=0)
    lam_pos: float = number(3.0, minimum=0)
    k_neg: float = number(3.0, minimum=0)
    lam_neg: float = number(2.0, minimum=0)
    sign: str = choice("own", "first")

    def terms(self, ev: EvidenceView) -> Terms:
        """The gate, by the sign of the advantage."""
        total = ev.log_ratio("current", self.anchor, self.clamp).sum(-1, keepdim=True)
        if ev.extra_weight is not None:
            total = total + self._log_applied(ev)
        log_w = total.clamp(-self.clamp, self.clamp).clamp(min=_LOG_FLOOR)
        positive, negative = self._phi(log_w, self.k_pos, self.lam_pos), self._phi(log_w, self.k_neg, self.lam_neg)
        return Terms(weight=torch.where(judged_by(ev, self.sign) >= 0, positive, negative), absorbs=True)

    def _log_applied(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1]` logarithm of the added weights over the row: they enter w, not c."""
        assert ev.extra_weight is not None
        logs = ev.extra_weight.clamp(min=1e-8).log().clamp(-self.clamp, self.clamp)
        return torch.where(ev.rows.mask, logs, 0.0).sum(-1, keepdim=True)

    @staticmethod
    def _phi(log_w: Tensor, k: float, lam: float) -> Tensor:
        return torch.exp(lam + k * log_w - lam * log_w.exp())
