"""How far the policy moves from its data, its entropy, and how far each method holds back its steps."""

from __future__ import annotations

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.study import Study

PLACE = Place("Divergence and step size", 160)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """Curves of KL, entropy and step scale."""
    return [*pictures(study, "kl-steps", "entropy-steps", "step-scale-steps")]
