"""Sizes of decoder-only language models, from a Hugging Face config.json or, for known models, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.errors import UsageError

_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder of the Llama and Qwen families: grouped-query attention, gated MLP or experts, root-mean-square norms.

    Attributes:
        layers: Number of layers.
        hidden: Width of the residual stream.
        intermediate: Width of the gated MLP, or of one expert.
        heads: Query heads.
        kv_heads: Key and value heads.
        head: Width of a head.
        vocab: Number of tokens.
        tied: The output head is the embedding.
        bias: Number of attention projections with a bias: 0, 3 (query, key, value) or 4 (output too).
        head_norms: Norms on each query and key head.
        experts: Experts per layer; 0: one dense MLP.
        active_experts: Experts per token.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head: int
    vocab: int
    tied: bool
    bias: int = 0
    head_norms: bool = False
    experts: int = 0
    active_experts: int = 0

    @property
    def query(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head

    @property
    def key_value(self) -> int:
        """Width of all key heads, the same as of all value heads."""
        return self.kv_heads * self.head

    @property
    def parameters(self) -> int:
        """All parameters."""
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * self._layer(max(1, self.experts)) + self.hidden

    @property
    def active(self) -> int:
        """Parameters used per token in matrix products: the head but not the embedding, and the active experts only."""
        return self.vocab * self.hidden + self.layers * self._layer(max(1, self.active_experts)) + self.hidden

    @property
    def linear_widths(self) -> int:
        """Sum of input and output widths of a layer's linear layers: the size of adapters of rank 1."""
        attention = 2 * (self.hidden + self.query) + 2 * (self.hidden + self.key_value)
        router = self.hidden + self.experts if self.experts else 0
        return attention + router + max(1, self.experts) * 3 * (self.hidden + self.intermediate)

    def _layer(self, experts: int) -> int:
        attention = 2 * self.hidden * (self.query + self.key_value)
        biases = (self.query + 2 * self.key_value if self.bias else 0) + (self.hidden if self.bias == 4 else 0)
        norms = 2 * self.hidden + (2 * self.head if self.head_norms else 0)
        router = self.hidden * self.experts
        return attention + biases + norms + router + experts * 3 * self.hidden * self.intermediate


KNOWN: Mapping[str, ModelShape] = {
    "Qwen2-1.5B": ModelShape(28, 1536, 8960, 12, 2, 128, 151936, True, bias=3),
    "Qwen2.5-0.5B": ModelShape(24, 896, 4864, 14, 2, 64, 151936, True, bias=3),
    "Qwen2.5-1.5B": ModelShape(28, 1536, 8960, 12, 2, 128, 151936, True, bias=3),
    "Qwen2.5-7B": ModelShape(28, 3584, 18944, 28, 4, 128, 152064, False, bias=3),
    "Qwen2.5-14B": ModelShape(48, 5120, 13824, 40, 8, 128, 152064, False, bias=3),
    "Qwen2.5-32B": ModelShape(64, 5120, 27648, 40, 8, 128, 152064, False, bias=3),
    "Qwen3-8B-Base": ModelShape(36, 4096, 12288, 32, 8, 128, 151936, False, head_norms=True),
    "Qwen3-30B-A3B-Base": ModelShape(
        48, 2048, 768, 32, 4, 128, 151936, False, head_norms=True, experts=128, active_experts=8
    ),
    "Llama-3.2-3B-Instruct": ModelShape(28, 3072, 8192, 24, 8, 128, 128256, True),
    "Llama-3.1-8B-Instruct": ModelShape(32, 4096, 14336, 32, 8, 128, 128256, False),
    "smollm2": ModelShape(30, 576, 1536, 9, 3, 64, 49152, True),
}
"""Models of the two papers and small ones, by the last part of their hub name, or by ours."""


def model_shape(source: str) -> ModelShape:
    """The shape of a model from its folder's config.json, or by name.

    Raises:
        UsageError: There is no such folder or known model, or its family is not supported.
    """
    path = Path(source).expanduser() / "config.json"
    if path.is_file():
        try:
            return read_shape(json.loads(path.read_text()), source)
        except (OSError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"--model {source}: its config.json cannot be read ({error})") from error
    name = source.rstrip("/").rpartition("/")[2]
    if name not in KNOWN:
        raise UsageError(
            f"--model {source}: size unknown; give a folder with a config.json, or one of {', '.join(KNOWN)}"
        )
    return KNOWN[name]


def read_shape(config: Mapping[str, Any], source: str) -> ModelShape:
    """The shape that a Hugging Face configuration describes.

    Raises:
        UsageError: The family is not supported or a size is missing.
    """
    family = config.get("model_type")
    if family not in _FAMILIES:
        raise UsageError(f"--model {source}: no estimate for model_type {family!r}; supported: {', '.join(_FAMILIES)}")
    sparse = family == "qwen3_moe"
    attention_bias = 4 if config.get("attention_bias") else 0
    try:
        heads = int(config["num_attention_heads"])
        return ModelShape(
            layers=int(config["num_hidden_layers"]),
            hidden=int(config["hidden_size"]),
            intermediate=int(config["moe_intermediate_size" if sparse else "intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head=int(config.get("head_dim") or config["hidden_size"] // heads),
            vocab=int(config["vocab_size"]),
            tied=bool(config.get("tie_word_embeddings", False)),
            bias=3 if family == "qwen2" else attention_bias,
            head_norms=family.startswith("qwen3"),
            experts=int(config["num_experts"]) if sparse else 0,
            active_experts=int(config["num_experts_per_tok"]) if sparse else 0,
        )
    except KeyError as error:
        raise UsageError(f"--model {source}: its config.json lacks {error}") from error
