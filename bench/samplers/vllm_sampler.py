"""vllm: an engine of vLLM in the process that trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.samplers.catalog import SamplingJob
from vcpo_bench.bench.samplers.engine_sampler import EngineSampler
from vcpo_bench.bench.samplers.vllm_engine.releases import require
from vcpo_bench.naming.parameters import choice, number

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy
    from vcpo_bench.bench.samplers.engines.base import InflightEngine

_SAME = "learner"


@dataclass(frozen=True, kw_only=True)
class VllmSampler(EngineSampler):
    """Samples with vLLM in the learner's process; weights are loaded in place.

    Attributes:
        dtype: What the engine computes in; `learner`: the same as the learner.
        memory: Size of its KV cache in GiB; 0: what the cell needs.
    """

    name = "vllm"
    summary = "a vLLM engine in the process that trains; weights are loaded in place"
    in_turns = True
    dtype: str = choice(_SAME, "float32", "bfloat16")
    memory: float = number(0.0, minimum=0.0, maximum=1e6, write=lambda value: f"{value:g}")

    def check_installed(self) -> None:
        """See `Sampler.check_installed`."""
        require()

    def start(self, policy: CausalPolicy, job: SamplingJob) -> InflightEngine:
        """See `EngineSampler.start`."""
        from vcpo_bench.bench.samplers.vllm_engine.in_process import VllmInProcess

        dtype = str(policy.dtype).removeprefix("torch.") if self.dtype == _SAME else self.dtype
        return VllmInProcess(policy, dtype, job.prompt_length, job.max_response, job.responses, self.memory)
