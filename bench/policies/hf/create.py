"""Small language models from scratch: a random Llama with a character tokenizer, for machines without hub access."""

from __future__ import annotations

import string
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from vcpo_bench.bench.policies.hf.new_model_spec import read_new_model

SPECIAL = ("<pad>", "<eos>", "<unk>")
CHARACTERS = tuple(string.digits + string.ascii_letters + string.punctuation + " \n")
_POSITIONS = 2048


def new_model(expression: str, seed: int = 0) -> tuple[Any, Any]:
    """An untrained model and its tokenizer.

    Args:
        expression: `llama(1M)`: about 1 million parameters (10k to 1000M); `llama(1M,head=32)`: with attention heads
            of size 32, as vLLM needs on a CPU.
        seed: Seed of the weights; the global random state is neither read nor changed.

    Raises:
        UsageError: The expression cannot be read.
    """
    spec = read_new_model(expression)
    layers, width, head = shape_for(spec.size, spec.head)
    config = LlamaConfig(
        vocab_size=len(SPECIAL) + len(CHARACTERS),
        hidden_size=width,
        intermediate_size=8 * width // 3,
        num_hidden_layers=layers,
        num_attention_heads=width // head,
        num_key_value_heads=width // head,
        max_position_embeddings=_POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config), character_tokenizer()


def shape_for(parameters: float, head: int = 0) -> tuple[int, int, int]:
    """Layers, width and head size of a model with about this many parameters (12 layers x width squared)."""
    layers = 2 if parameters < 5e5 else 4 if parameters < 5e6 else 8 if parameters < 5e7 else 16
    head = head or (16 if parameters < 5e6 else 64)
    return layers, min(range(head, 4097, head), key=lambda width: abs(12 * layers * width**2 - parameters)), head


def character_tokenizer() -> Any:
    """A tokenizer with one token per printable ASCII character; decoding gives back exactly what was encoded."""
    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *CHARACTERS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()  # else decoding puts spaces between characters
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
