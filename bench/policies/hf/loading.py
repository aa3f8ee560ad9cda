"""Loading a language model and its tokenizer from a folder, and putting adapters into it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.errors import UsageError, how_to_install

logging.disable_progress_bar()  # workers share one terminal

_HERE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Unless told so, transformers asks the terminal whether to run code of the model's folder."""

LORA_SEED = 0
"""Seed of the random half of each adapter. The other half starts at zero: training starts at the model itself."""


def read_network(folder: Path) -> Any:
    """The causal language model in a folder, in float32.

    Raises:
        UsageError: There is none.
    """
    try:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **_HERE)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"--model {folder}: cannot load a causal language model ({_reason(error)})") from error


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder.

    Raises:
        UsageError: There is none, or it has no end token.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **_HERE)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"--model {folder}: cannot load a tokenizer ({_reason(error)})") from error
    if tokenizer.eos_token_id is None:
        raise UsageError(f"--model {folder}: its tokenizer has no end token, so no response could end; set eos_token")
    return tokenizer


def _reason(error: Exception) -> str:
    """The first line of what an error says, or its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_context(network: Any, task: BoundTask) -> None:
    """Refuse a task whose prompt and response do not fit into the context of a model.

    Raises:
        UsageError: They do not fit.
    """
    limit = getattr(network.config, "max_position_embeddings", None)
    needed = task.prompt_length + task.max_response
    if limit is not None and needed > limit:
        raise UsageError(
            f"{task.canonical}: {task.prompt_length} prompt and {task.max_response} response tokens exceed the model's "
            f"context of {limit}; set --max-response to at most {max(limit - task.prompt_length, 1)}"
        )
    kinds = set(getattr(network.config, "layer_types", None) or ())
    window = getattr(network.config, "sliding_window", None)
    if any(kind.startswith(("sliding", "chunked")) for kind in kinds) and window is not None and window < needed:
        raise UsageError(
            f"{task.canonical}: needs {needed} positions, but some layers of the model attend to {window} only"
        )


def add_adapters(network: Any, rank: int) -> None:
    """Freeze a model and add LoRA adapters to all of its linear layers except the head.

    Raises:
        UsageError: `peft` is not installed.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise UsageError(f"--lora needs peft: {how_to_install('hf')}") from error
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tied embeddings, which adapters on other layers do not touch
        torch.manual_seed(LORA_SEED)
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear",
                              task_type="CAUSAL_LM")  # fmt: skip
        inject_adapter_in_model(settings, network)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_("lora_" in name)
