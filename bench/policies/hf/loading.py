"""From a cell and a folder to a language model and a task that speak the same tokens."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import checked_device
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.samplers.base import parse_sampler
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.tasks.text import get_text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.errors import UsageError

logging.disable_progress_bar()  # workers share one terminal

LORA_SEED = 0
"""Of the random half of each adapter; the other half starts at zero, so that training starts at the model itself."""


def open_task(config: CellConfig, folder: Path) -> BoundTask:
    """The task of a cell in the tokens of the model in a folder.

    Raises:
        UsageError: The task is unknown or the folder holds no tokenizer that can be used.
    """
    return BoundTask(get_text_task(config.task), read_tokenizer(folder), config.max_response, config.chat)


def open_model(config: CellConfig, task: Task, folder: Path, device: str = "cpu") -> CausalPolicy:
    """The language model of a cell, ready to be trained.

    Raises:
        UsageError: The folder holds no causal language model, it is too short for the task, or the device is missing.
    """
    assert isinstance(task, BoundTask)
    network = read_network(folder)
    check_context(network, task)
    if config.lora:
        add_adapters(network, config.lora)
    dtype = getattr(torch, config.dtype)
    for parameter in network.parameters():
        parameter.data = parameter.data.to(torch.float32 if parameter.requires_grad else dtype)
    network = network.to(checked_device(device))
    return CausalPolicy(network, task.pad, dtype, parse_sampler(config.sampler), config.checkpointing)


def read_network(folder: Path) -> Any:
    """The causal language model in a folder, in float32.

    Raises:
        UsageError: There is none.
    """
    try:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"--model {folder}: no causal language model could be read there ({reason})") from error


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder.

    Raises:
        UsageError: There is none, or it has no end token.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"--model {folder}: no tokenizer could be read there ({reason})") from error
    if tokenizer.eos_token_id is None:
        raise UsageError(f"--model {folder}: its tokenizer has no end token, so no response could end; set eos_token")
    return tokenizer


def check_context(network: Any, task: BoundTask) -> None:
    """Refuse a task longer than the positions of a model.

    Raises:
        UsageError: It is.
    """
    limit = getattr(network.config, "max_position_embeddings", None)
    needed = task.prompt_length + task.max_response
    if limit is not None and needed > limit:
        raise UsageError(
            f"{task.canonical}: {task.prompt_length} prompt and {task.max_response} response tokens are more than the "
            f"{limit} positions of the model; give --max-response, at most {max(limit - task.prompt_length, 1)}"
        )
    kinds = set(getattr(network.config, "layer_types", None) or ())
    window = getattr(network.config, "sliding_window", None)
    if any(kind.startswith(("sliding", "chunked")) for kind in kinds) and window is not None and window < needed:
        raise UsageError(
            f"the model sees {window} positions in some layers, fewer than the {needed} of {task.canonical}"
        )


def add_adapters(network: Any, rank: int) -> None:
    """Freeze a model and put LoRA adapters on all of its linear layers but the head.

    Raises:
        UsageError: Peft is not installed.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise UsageError("--lora needs peft: pip install 'vcpo-bench[hf]'") from error
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tied embeddings, which adapters on other layers do not touch
        torch.manual_seed(LORA_SEED)
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear",
                              task_type="CAUSAL_LM")  # fmt: skip
        inject_adapter_in_model(settings, network)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_("lora_" in name)
