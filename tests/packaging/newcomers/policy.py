"""The tiny policy with an initialization of its own."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.policies.embedded.tiny import Tiny
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.tasks import TokenTask


@dataclass(frozen=True, kw_only=True)
class Newcomer(Tiny):
    """Begins elsewhere."""

    name = "newcomer"
    summary = "as tiny, from other weights"
    starts = None

    def untrained(self, task: TokenTask, seed: int) -> TinyPolicy:
        """See `EmbeddedPolicy.untrained`."""
        return super().untrained(task, seed + 1)
