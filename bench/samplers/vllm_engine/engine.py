"""A vLLM engine in this process, opened with placeholder weights; the first push loads the real ones."""

from __future__ import annotations

import copy
import gc
import itertools
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, BrokenAnswer, Request, check, stamps
from vcpo_bench.bench.samplers.vllm_engine.releases import counts_versions, engine_settings, require, sampling_settings
from vcpo_bench.errors import UsageError

_BLOCK = 128
"""Tokens of the largest KV-cache block that an engine allocates."""
CPU_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Sizes of attention heads for which vLLM has CPU kernels."""
_open: dict[str, LocalEngine] = {}
"""The engine of this process; opening one takes half a minute, so consecutive cells share it."""


class LocalEngine:
    """An engine for one architecture, with the weights of whichever cell pushed last. Use `open_engine`.

    Args:
        config: Hugging Face configuration of the model.
        dtype: `float32` or `bfloat16`.
        prompt: Longest prompt.
        length: Longest response.
        rows: Responses in flight at once.
        memory: Most GiB of its key-value cache; 0: as many as `rows` responses need, at most 16.

    Raises:
        UsageError: vLLM is absent or too old, or has no attention for this model here.
    """

    def __init__(self, config: Any, dtype: str, prompt: int, length: int, rows: int, memory: float) -> None:
        self._release = require()
        vllm = import_module("vllm")
        self._counter = itertools.count()
        self._parameters, tokens = vllm.SamplingParams, prompt + length
        if not torch.cuda.is_available() and head_size(config) not in CPU_HEADS:
            raise UsageError(
                f"--sampler vllm: on a CPU it has no attention for heads of {head_size(config)}, only for "
                f"{', '.join(map(str, CPU_HEADS))}; for one of your own: "
                "vcpo-bench lab warmup --new 'llama(1M,head=32)'"
            )
        each = -(-tokens // _BLOCK) * _BLOCK * bytes_per_token(config, dtype)
        room = int((memory or min(16.0, rows * each / 2**30 + 0.03)) * 2**30)
        settings = engine_settings(dtype, tokens, rows, rows * prompt, room, chunks=torch.cuda.is_available())
        threads, set_threads = torch.get_num_threads(), torch.set_num_threads
        with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
            untied(config).save_pretrained(folder)
            self._llm = vllm.LLM(folder, **settings)
        torch.set_num_threads = set_threads  # on a CPU vLLM replaces it by a function that does nothing
        torch.set_num_threads(threads)

    def push(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Load weights in place; responses in flight continue under them."""
        self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": list(weights)})
        if counts_versions(self._release):
            self._llm.llm_engine.set_weight_version(str(version))

    def draw(self, requests: Sequence[Request]) -> list[Answer]:
        """Complete answers, in the order of the requests.

        Raises:
            BrokenAnswer: One of them does not fit what was asked.
        """
        prompts, parameters = self._translate(requests)
        outputs = self._llm.generate(prompts, parameters, use_tqdm=False)
        return [check(request, _answer(output)) for request, output in zip(requests, outputs, strict=True)]

    def begin(self, requests: Sequence[Request]) -> list[str]:
        """Queue requests without a step; returns their names in what `step` returns."""
        names = [f"flight{next(self._counter)}" for _ in requests]
        for name, prompt, parameters in zip(names, *self._translate(requests), strict=True):
            self._llm.llm_engine.add_request(name, prompt, parameters)
        return names

    def step(self, known: Mapping[str, int] = MappingProxyType({})) -> dict[str, Answer]:
        """Draw one more token of everything in flight; returns the tokens drawn so far, by name.

        Args:
            known: How many of its first tokens are left out, by name; 0 for a name that is not there.
        """
        outputs = self._llm.llm_engine.step()
        return {output.request_id: _answer(output, known.get(output.request_id, 0)) for output in outputs}

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight."""
        return not self._llm.llm_engine.has_unfinished_requests()

    def weight_version(self) -> int | None:
        """Version of its weights as the engine itself counts it; None: this release does not."""
        return int(self._llm.llm_engine.get_weight_version()) if counts_versions(self._release) else None

    def abandon(self, names: Iterable[str]) -> None:
        """Abort what is in flight."""
        self._llm.llm_engine.abort_request(list(names))

    def _translate(self, requests: Sequence[Request]) -> tuple[list[Any], list[Any]]:
        prompts = [{"prompt_token_ids": request.prompt} for request in requests]
        return prompts, [self._parameters(**sampling_settings(r.length, r.seed, r.eos)) for r in requests]

    def close(self) -> None:
        """Release its memory."""
        state = import_module("vllm.distributed.parallel_state")
        del self._llm
        gc.collect()
        with suppress(AssertionError, RuntimeError):  # if it was never set up
            state.cleanup_dist_env_and_memory()


def open_engine(config: Any, dtype: str, prompt: int, length: int, rows: int, memory: float) -> LocalEngine:
    """The engine of this process with these settings: the last one where they are equal, else a new one."""
    key = f"{config.to_json_string()} {dtype} {prompt} {length} {rows} {memory}"
    if key not in _open:
        while _open:
            _open.popitem()[1].close()
        _open[key] = LocalEngine(config, dtype, prompt, length, rows, memory)
    return _open[key]


def untied(config: Any) -> Any:
    """The same architecture with an untied output head.

    On a CPU vLLM keeps a packed copy of a tied head that a push does not update, so its log-probabilities would be off
    by 0.6 nats. An untied head is pushed like any other weight.
    """
    changed = copy.deepcopy(config)
    changed.tie_word_embeddings = False
    return changed


def bytes_per_token(config: Any, dtype: str) -> int:
    """KV-cache bytes of one token."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return 2 * int(config.num_hidden_layers) * int(heads) * head_size(config) * (4 if dtype == "float32" else 2)


def head_size(config: Any) -> int:
    """Size of an attention head."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def _answer(output: Any, first: int = 0) -> Answer:
    """One of its outputs from a token on as an `Answer`; a log-probability that is missing becomes NaN."""
    done = output.outputs[0]
    count, given = len(done.token_ids), done.logprobs or [{}] * len(done.token_ids)
    if len(given) != count:
        raise BrokenAnswer(f"{count} tokens came with {len(given)} log-probabilities")
    tokens = [int(token) for token in done.token_ids[first:]]
    logp = [getattr(entry.get(token), "logprob", None) for token, entry in zip(tokens, given[first:], strict=True)]
    spans = getattr(done, "weight_versions", None)
    versions = None
    if spans is not None and all(span.version.isdigit() for span in spans):
        versions = stamps(((int(span.version), span.start, span.end) for span in spans), count)[first:]
    return Answer(tokens, [float("nan") if value is None else float(value) for value in logp], versions)
