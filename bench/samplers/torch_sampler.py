"""torch: the policy's own loop with a KV cache and continuous refill."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vcpo_bench.bench.samplers.policy_sampler import PolicySampler
from vcpo_bench.naming.parameters import integer

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.sampling import SamplingOptions


@dataclass(frozen=True, kw_only=True)
class TorchSampler(PolicySampler):
    """Samples with PyTorch in the learner's process; a slot whose response has ended takes the next prompt.

    Attributes:
        slots: Responses drawn at once; 0: all of a batch.
    """

    name = "torch"
    summary = "the policy itself, with a KV cache; a slot whose response has ended takes the next prompt"
    slots: int = integer(0, minimum=0)

    @property
    def at_once(self) -> int:
        """The slots."""
        return self.slots

    def sampling(self) -> SamplingOptions:
        """See `Sampler.sampling`."""
        from vcpo_bench.bench.policies.hf.sampling import SamplingOptions, refill

        return SamplingOptions(partial(refill, slots=self.slots), self.truncation())
