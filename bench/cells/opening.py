"""From a cell's configuration to its task, its start policy and its sampler."""

from __future__ import annotations

from pathlib import Path

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.samplers.catalog import SamplingJob
from vcpo_bench.bench.samplers.engines.base import InflightEngine
from vcpo_bench.bench.tasks import Task, TokenTask
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.errors import UsageError


def open_task(config: CellConfig, start: Path | None) -> Task:
    """The task of a cell; a text task is bound to the tokenizer of the cell's language model.

    Args:
        config: The cell.
        start: Folder of the language model; None or a file for the built-in tiny policy.

    Raises:
        UsageError: The task is unknown, needs a language model or cannot use one, or the folder has no usable
            tokenizer.
    """
    task = config.parts.task
    if isinstance(task, TokenTask):
        return task
    with hf_packages():
        from vcpo_bench.bench.policies.hf.loading import read_tokenizer
    tokenizer = read_tokenizer(_folder(config, start))
    return BoundTask(task, tokenizer, config.max_response, config.chat)


def longest_response(config: CellConfig) -> int:
    """Longest response of a cell in tokens; its language model need not be at hand.

    Raises:
        UsageError: The task is unknown.
    """
    if config.model and config.max_response:
        return config.max_response
    return config.parts.task.max_response


def open_policy(config: CellConfig, task: Task, start: Path | None, device: str = "cpu") -> Policy:
    """The start policy of a cell, ready to be trained.

    Args:
        config: The cell.
        task: Its task, from `open_task`.
        start: File of the start policy, or folder of the language model; None: the policy that ships with the task.
        device: `cpu`, `cuda` or `cuda:N`.

    Raises:
        UsageError: The policy cannot be loaded, its context is too short for the task, or there is no such device.
    """
    if not config.model:
        assert isinstance(task, TokenTask)
        return load_warm_start(task, start, config.parts.policy).to(checked_device(device))
    with hf_packages():
        from vcpo_bench.bench.policies.hf.loading import add_adapters, check_context, read_network
        from vcpo_bench.bench.policies.hf.policy import CausalPolicy
    assert isinstance(task, BoundTask)
    network = read_network(_folder(config, start))
    check_context(network, task)
    if config.lora:
        add_adapters(network, config.lora)
    dtype = getattr(torch, config.dtype)
    for parameter in network.parameters():
        parameter.data = parameter.data.to(torch.float32 if parameter.requires_grad else dtype)
    network = network.to(checked_device(device))
    sampling = config.parts.sampler.sampling()
    return CausalPolicy(network, task.pad, dtype, sampling, config.checkpointing)


def open_sampler(config: CellConfig, task: Task, policy: Policy) -> InflightEngine | None:
    """The engine that samples for a cell; None: the policy samples itself.

    Raises:
        UsageError: A package is missing, the sampler cannot sample this cell, or there is no server.
    """
    sampler, regime = config.parts.sampler, config.parts.regime
    if sampler.needs_language_model and not config.model:
        raise UsageError(f"--sampler {sampler.name}: needs a language model; name one with --model")
    batches = config.staleness + 1 if regime.splits_responses else 1
    job = SamplingJob(
        prompt_length=task.prompt_length,
        max_response=task.max_response,
        responses=config.prompts * config.responses * batches,
        adapters=config.lora > 0,
        publish_every=regime.publish_every,
        keeps_cache=regime.splits_responses and regime.keeps_cache,
        regime=config.regime,
        truncated=regime.truncates,
        in_turns=task.environment is not None,
    )
    return sampler.open(policy, job)


def _folder(config: CellConfig, start: Path | None) -> Path:
    if start is None:
        raise UsageError(f"this cell trains the language model {config.model}: name its folder with --model")
    return start
