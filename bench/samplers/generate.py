"""generate: the loop of Hugging Face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.samplers.policy_sampler import PolicySampler

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.sampling import SamplingOptions


@dataclass(frozen=True, kw_only=True)
class GenerateSampler(PolicySampler):
    """Samples with `generate` of transformers, token by token with the same random numbers as `torch`."""

    name = "generate"
    summary = "the generate() of Hugging Face transformers, with the same random numbers as torch"
    needs_language_model = True

    def sampling(self) -> SamplingOptions:
        """See `Sampler.sampling`."""
        with hf_packages():
            from vcpo_bench.bench.policies.hf.generate import generate
            from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
        return SamplingOptions(generate, self.truncation())
