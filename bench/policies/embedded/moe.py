"""moe: a mixture of experts, whose routers can disagree between sampler and learner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vcpo_bench.bench.policies import moe
from vcpo_bench.bench.policies.catalog import EmbeddedPolicy
from vcpo_bench.bench.policies.moe.network import MoeConfig
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.tasks import TokenTask


@dataclass(frozen=True, kw_only=True)
class Moe(EmbeddedPolicy):
    """Two layers of width 64 with 8 experts, of which each token uses 2: Qwen3-MoE in small (arXiv 2505.09388)."""

    name = "moe"
    summary = "a mixture of 8 experts, 2 per token, in two layers, about 0.23 M parameters (Qwen3-MoE in small)"
    routed = True
    half = True
    starts = Path(moe.__file__).with_name("warm")

    def untrained(self, task: TokenTask, seed: int) -> MoePolicy:
        """See `EmbeddedPolicy.untrained`."""
        return MoePolicy(MoeConfig(task.vocab_size, task.context), seed)
