"""tiny: the dense transformer that trains unless another policy is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.bench.policies import tiny
from vcpo_bench.bench.policies.catalog import EmbeddedPolicy
from vcpo_bench.bench.tasks import TokenTask

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.tiny.policy import TinyPolicy


@dataclass(frozen=True, kw_only=True)
class Tiny(EmbeddedPolicy):
    """Two pre-norm layers of width 64, learned positions, about 0.1 M parameters."""

    name = "tiny"
    summary = "a dense transformer of two layers, about 0.1 M parameters"
    stacked = True
    starts = Path(tiny.__file__).with_name("warm")

    def untrained(self, task: TokenTask, seed: int) -> TinyPolicy:
        """See `EmbeddedPolicy.untrained`."""
        from vcpo_bench.bench.policies.tiny.network import PolicyConfig
        from vcpo_bench.bench.policies.tiny.policy import TinyPolicy

        return TinyPolicy(PolicyConfig(task.vocab_size, task.context), seed)
