"""graph: the loop of `torch` in fixed shapes, each token one CUDA graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.samplers.policy_sampler import PolicySampler
from vcpo_bench.naming.parameters import integer

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.sampling import SamplingOptions


@dataclass(frozen=True, kw_only=True)
class GraphSampler(PolicySampler):
    """Samples like `torch`, with forward pass, head and draw of a token in one launch on a GPU.

    Responses that an `inflight` regime splits are drawn by the loop of `torch`.

    Attributes:
        slots: Responses drawn at once, rounded up to 32, 64, 128, 192 or 256; 0: 256.
    """

    name = "graph"
    summary = "like torch, with one CUDA graph per token; without a GPU the same steps one by one"
    needs_language_model = True
    keeps = True
    slots: int = integer(0, minimum=0)

    @property
    def at_once(self) -> int:
        """The slots."""
        return self.slots or 256

    @property
    def layer_seconds(self) -> float:
        """See `Sampler.layer_seconds`: a fifth (docs/studies/gpu-sampling)."""
        return 2e-4

    def sampling(self) -> SamplingOptions:
        """See `Sampler.sampling`."""
        with hf_packages():
            from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
            from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
        return SamplingOptions(GraphLoop(self.slots), self.truncation())
