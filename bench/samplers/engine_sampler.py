"""What the samplers share in which an inference engine draws the responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.samplers.catalog import Sampler, SamplingJob
from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy
    from vcpo_bench.bench.samplers.engines.base import InflightEngine


@dataclass(frozen=True, kw_only=True)
class EngineSampler(Sampler, ABC):
    """A sampler that opens an engine to which the learner's weights are pushed.

    Its outputs depend on batch composition, so that no cell can be run again bit for bit.

    Class attributes:
        in_turns: Whether its engine draws the turns of a policy that an environment answers (`Segment.talk`).
    """

    in_turns: ClassVar[bool] = False
    needs_language_model = True
    for_language_models = True
    exact = False

    def workers(self, gpus: int) -> int:
        """One: engines all take the first GPU, whatever the worker's."""
        return 1

    def check(self, job: SamplingJob) -> None:
        """Refuse a cell that an engine cannot sample.

        Raises:
            UsageError: It cannot.
        """
        if job.adapters:
            raise UsageError(f"--sampler {self.name}: cannot push LoRA adapters; drop --lora, or use --sampler torch")
        if job.truncated:
            raise UsageError(
                f"--sampler {self.name}: always draws from the whole distribution, so --regime {job.regime} needs "
                "--sampler torch"
            )
        if job.in_turns and not self.in_turns:
            raise UsageError(
                f"--sampler {self.name}: draws a response in one turn, and this task has several; use --sampler vllm, "
                "vllm-server or torch"
            )
        if job.in_turns and job.keeps_cache:
            raise UsageError(
                f"--sampler {self.name} --regime {job.regime}: every turn begins with a new request, so no cache is "
                "kept from turn to turn; use inflight(cache=recompute), or --sampler torch"
            )
        if job.publish_every > 1:
            raise UsageError(
                f"--sampler {self.name}: a resumed run could not push the older weights of publish_every="
                f"{job.publish_every}; use 1, or --sampler torch"
            )

    def open(self, policy: Policy, job: SamplingJob) -> InflightEngine:
        """See `Sampler.open`."""
        with hf_packages():
            from vcpo_bench.bench.policies.hf.policy import CausalPolicy
        self.check(job)
        assert isinstance(policy, CausalPolicy)
        return self.start(policy, job)

    @abstractmethod
    def start(self, policy: CausalPolicy, job: SamplingJob) -> InflightEngine:
        """The engine of a job that passed `check`.

        Raises:
            UsageError: A package is missing, or there is no server.
        """
