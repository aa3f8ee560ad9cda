"""From a cell to the engine that samples for it."""

from __future__ import annotations

import os

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.base import Model
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.samplers.base import InflightSampler, parse_sampler
from vcpo_bench.bench.tasks import Task
from vcpo_bench.errors import UsageError

URL_VARIABLE = "VCPO_BENCH_VLLM_URL"
"""Where `vllm-server` finds its server; `--url` sets it. Not part of a cell: it does not change its numbers."""


def open_sampler(config: CellConfig, task: Task, policy: Model) -> InflightSampler:
    """The engine of a cell.

    Raises:
        UsageError: The cell cannot be sampled by vLLM, or no server is there.
    """
    spec, regime = parse_sampler(config.sampler), REGIMES.parse(config.regime)
    if not isinstance(policy, CausalPolicy):
        raise UsageError(f"--sampler {spec.name}: samples language models; give one with --model")
    if config.lora:
        raise UsageError(f"--sampler {spec.name}: adapters are not pushed to vLLM; leave out --lora, or use torch")
    if regime.publish_every > 1:
        raise UsageError(
            f"--sampler {spec.name}: a resumed run could not give vLLM the older weights of publish_every="
            f"{regime.publish_every}; use 1, or --sampler torch"
        )
    if spec.name == "vllm":
        from vcpo_bench.bench.samplers.vllm_engine.in_process import VllmSampler

        rows = config.prompts * config.responses * (config.staleness + 1 if regime.splits_responses else 1)
        return VllmSampler(policy, spec, task.prompt_length, task.max_response, rows)
    from vcpo_bench.bench.samplers.vllm_engine.over_http import ServerSampler

    if regime.splits_responses and regime.keeps_cache:
        raise UsageError(
            f"--sampler {spec.name} --regime {config.regime}: a server cannot be stopped at an exact token with its "
            "cache kept; use inflight(cache=recompute), or --sampler vllm"
        )
    return ServerSampler(policy, spec, os.environ.get(URL_VARIABLE, ""))
