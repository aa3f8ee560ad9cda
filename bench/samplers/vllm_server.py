"""vllm-server: a vLLM server that somebody else started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.samplers.catalog import SamplingJob
from vcpo_bench.bench.samplers.engine_sampler import EngineSampler
from vcpo_bench.bench.samplers.vllm_engine.address import read_address
from vcpo_bench.bench.samplers.vllm_engine.releases import require
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import choice

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy
    from vcpo_bench.bench.samplers.engines.base import InflightEngine

URL_VARIABLE = "VCPO_BENCH_VLLM_URL"
"""Environment variable with the URL of the server (`--url`). It is no part of a cell: no number depends on it."""


@dataclass(frozen=True, kw_only=True)
class VllmServerSampler(EngineSampler):
    """Samples over HTTP from a server, which is not stopped at the end.

    Attributes:
        weights: How weights reach the server: through a file (`disk`), CUDA IPC or NCCL.
        pause: What the server does with responses in flight when weights change: finish them first (`wait`), freeze
            them (`keep`), or end them, so that they continue as a new prompt (`abort`).
    """

    name = "vllm-server"
    summary = "a running vLLM server (--url); token ids in and out over HTTP"
    in_turns = True
    weights: str = choice("disk", "ipc", "nccl")
    pause: str = choice("wait", "keep", "abort")

    def check_installed(self) -> None:
        """See `Sampler.check_installed`."""
        if not (url := os.environ.get(URL_VARIABLE, "")):
            raise UsageError(f"--sampler {self.name}: give the server's address with --url, or in {URL_VARIABLE}")
        read_address(url)
        if self.weights != "disk":
            require()

    def check(self, job: SamplingJob) -> None:
        """See `EngineSampler.check`.

        Raises:
            UsageError: The weights change within responses that keep their cache.
        """
        super().check(job)
        if job.keeps_cache:
            raise UsageError(
                f"--sampler {self.name} --regime {job.regime}: a server cannot stop at an exact token and keep its "
                "cache; use inflight(cache=recompute), or --sampler vllm"
            )

    def start(self, policy: CausalPolicy, job: SamplingJob) -> InflightEngine:
        """See `EngineSampler.start`."""
        from vcpo_bench.bench.samplers.vllm_engine.over_http import VllmOverHttp

        return VllmOverHttp(policy, os.environ.get(URL_VARIABLE, ""), self.weights, self.pause)
