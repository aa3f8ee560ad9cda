"""The precision of the output head, under another name."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.replay.mismatch.components.head import Head


@dataclass(frozen=True, kw_only=True)
class Newcomer(Head):
    """Rounds as its parent does."""

    name = "newcomer"
    summary = "as head"
