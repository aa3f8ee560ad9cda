"""What draws responses: one protocol, so that a cell may sample in its own process or from an inference engine."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from vcpo_bench.bench.cells.flag_values import split_top_level
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.trajectories import Rollout
from vcpo_bench.errors import UsageError


class Sampler(Protocol):
    """Draws responses under the weights it was given last. Token ids go in and come out, in main memory."""

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """One response per row of `uniforms`, as `Policy.sample` describes.

        A sampler whose weights change while it works stamps every token with their version (`Rollout.version`).
        """

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Sample from these weights, by parameter name, from now on; they have seen `version` updates."""

    def health(self) -> str:
        """What is wrong with it, in one line; empty while it can sample."""

    def close(self) -> None:
        """Let go of processes and memory."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some consecutive tokens of every response of a batch in flight.

    Attributes:
        batch: Index of the batch.
        prompts: int64 [P, Lp].
        uniforms: float64 [B, T].
        rollout: [B, T] tensors with the tokens before; filled in place.
        places: Which tokens to draw.
    """

    batch: int
    prompts: Tensor
    uniforms: Tensor
    rollout: Rollout
    places: range


class InflightSampler(Sampler, Protocol):
    """A sampler that keeps responses in flight while its weights change."""

    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        """Draw the next tokens of all batches in flight, in place, under the present weights.

        Args:
            segments: One per batch; a batch not seen before begins, after what its rollout holds already.
            eos: Token that ends a response, or None.
            keep: Go on with the keys and values of the old weights; else the present ones read everything again.
        """


class InProcess:
    """Samples from a policy in this process: the learner's own, or a copy that keeps older or rounded weights.

    Args:
        model: The learner's policy.
        copied: Sample from a copy.

    Attributes:
        model: What is sampled from.
        version: Updates its weights have seen, as told; a shared policy has always seen all.
    """

    def __init__(self, model: Policy, copied: bool) -> None:
        self.copied, self.version = copied, 0
        # weights that ask for no gradients would be cast again for every token: autocast remembers only the others
        self.model = copy.deepcopy(model) if copied else model

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        """See `Sampler`."""
        return self.model.sample(prompts, uniforms, eos)

    def set_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """See `Sampler`; nothing needs to be moved where the policy is shared."""
        self.version = version
        if not self.copied:
            return
        own = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weight in weights:
                own[name].copy_(weight)

    def health(self) -> str:
        """Always well."""
        return ""

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class SamplerSpec:
    """How a language model is sampled; the embedded policies have one way only.

    Attributes:
        name: `torch` (own loop, key-value cache, continuous refill), `generate` (Hugging Face's), `vllm` (in this
            process) or `vllm-server` (over HTTP).
        slots: Responses drawn at once; 0: as many as are asked for.
        top_p: Probability mass kept; 1 is all.
        top_k: Tokens kept; 0 is all.
        truncate: `refuse` or `allow` top_p and top_k.
        dtype: What vLLM computes in; empty: as the learner.
        memory: GiB of vLLM's key-value cache; 0: what the cell needs.
        weights: How they reach a server: `disk`, `ipc` or `nccl`.
        pause: What a server does with responses in flight when weights change: `wait`, `keep` or `abort`.
    """

    name: str = "torch"
    slots: int = 0
    top_p: float = 1.0
    top_k: int = 0
    truncate: str = "refuse"
    dtype: str = ""
    memory: float = 0.0
    weights: str = "disk"
    pause: str = "wait"

    @property
    def canonical(self) -> str:
        """Name and what differs from the defaults: equal meaning, equal string."""
        plain = SamplerSpec()
        changed = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        text = ",".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
                        for key, value in sorted(changed.items()) if value != getattr(plain, key))  # fmt: skip
        return f"{self.name}({text})" if text else self.name


_OPTIONS = {
    "torch": ("slots", "top_p", "top_k", "truncate"),
    "generate": ("top_p", "top_k", "truncate"),
    "vllm": ("dtype", "memory"),
    "vllm-server": ("weights", "pause"),
}
_CHOICES = {
    "truncate": ("refuse", "allow"),
    "dtype": ("float32", "bfloat16"),
    "weights": ("disk", "ipc", "nccl"),
    "pause": ("wait", "keep", "abort"),
}


def parse_sampler(expression: str) -> SamplerSpec:
    """The sampler that an expression names: `torch`, `torch(slots=64)`, `generate`, `vllm`, `vllm-server`.

    Raises:
        UsageError: The name, an option or a value is unknown, or sampling would be truncated without being asked for
            in so many words.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", expression)
    if match is None or match[1] not in _OPTIONS:
        raise UsageError(
            f"--sampler {expression!r}: unknown; choose torch, torch(slots=64), generate, vllm or vllm-server"
        )
    values: dict[str, str | int | float] = {}
    for part in split_top_level(match[2] or ""):
        key, _, text = (piece.strip() for piece in part.partition("="))
        if key not in _OPTIONS[match[1]]:
            raise UsageError(
                f"--sampler {expression!r}: {match[1]} has no {key}; it has {', '.join(_OPTIONS[match[1]])}"
            )
        values[key] = _option(expression, key, text)
    spec = SamplerSpec(match[1], **values)  # type: ignore[arg-type]  # _option gave each the type of its field
    if (spec.top_p < 1 or spec.top_k) and spec.truncate != "allow":
        raise UsageError(
            f"--sampler {expression!r}: truncated sampling draws from another distribution than the policy, so that no "
            "importance ratio is 1 even without lag; leave it out, or add truncate=allow to study just that"
        )
    return spec


def _option(expression: str, key: str, text: str) -> str | int | float:
    try:
        if key in ("slots", "top_k") and int(text) >= 0:
            return int(text)
        if key == "top_p" and 0 < float(text) <= 1:
            return float(text)
        if key == "memory" and 0 < float(text) < math.inf:
            return float(text)
    except ValueError:
        pass
    if text in _CHOICES.get(key, ()):
        return text
    legal = "|".join(_CHOICES.get(key, ())) or {"top_p": "0..1", "memory": "GIB"}.get(key, "N")
    raise UsageError(f"--sampler {expression!r}: cannot read {key}={text}; write {key}={legal}")
