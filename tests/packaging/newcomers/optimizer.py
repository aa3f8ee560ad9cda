"""Gradient descent under another name."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.optimizers.sgd import SGD


@dataclass(frozen=True, kw_only=True)
class Newcomer(SGD):
    """Steps as its parent does."""

    name = "newcomer"
    summary = "as sgd"
