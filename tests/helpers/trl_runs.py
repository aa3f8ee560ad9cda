"""A tiny Llama, a character tokenizer, and trainers on a toy task, for the tests that need TRL."""

import itertools
import os
import random
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, PrinterCallback
from transformers.utils.logging import set_verbosity_error
from trl import GRPOConfig, GRPOTrainer

from vcpo_bench.adapters.trl import with_method

CHARACTERS = "0123+="
LENGTH = 8
DEVICE = os.environ.get("TRL_RUNS_DEVICE", "cpu")
"""`cuda` on the GPU day, which measures the same gradients there."""

torch.set_num_threads(1)
set_verbosity_error()


def tokenizer() -> PreTrainedTokenizerFast:
    words = {word: place for place, word in enumerate(["<pad>", "<eos>", "<unk>", *CHARACTERS])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    plain.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def model(seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    """A few thousand weights; a response ends at every token with probability of about one in nine."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": 3 + len(CHARACTERS),
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.2,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
    }
    return LlamaForCausalLM(LlamaConfig(**(settings | changes)))


def saved_model(folder: Path | str) -> LlamaForCausalLM:
    """From a folder, where TRL looks for the reference policy."""
    model().save_pretrained(f"{folder}/model")
    return LlamaForCausalLM.from_pretrained(f"{folder}/model", dtype=torch.float32)


def prompts(count: int = 64) -> Dataset:
    """All different."""
    texts = [f"{a}{b}+{c}{d}=" for a, b, c, d in itertools.product("0123", repeat=4)]
    return Dataset.from_list([{"prompt": text} for text in random.Random(0).sample(texts, count)])


def share_of_digits(completions: list[str], **_: Any) -> list[float]:
    """More digits are better, and a long response is a little better than a short one."""
    return [sum(c.isdigit() for c in text) / LENGTH + 0.1 * len(text) for text in completions]


def config(folder: Path | str, **changes: Any) -> GRPOConfig:
    settings: dict[str, Any] = {
        "output_dir": str(folder),
        "use_cpu": DEVICE == "cpu",
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 4,
        "num_generations": 4,
        "max_completion_length": LENGTH,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "seed": 0,
        "temperature": 0.9,
    }
    return GRPOConfig(**(settings | changes))


def trainer(
    folder: Path | str, method: str | None, lag: str = "fifo(0)", base: type = GRPOTrainer, **changes: Any
) -> Any:
    """A trainer with a method, or as TRL has it where the method is None."""
    made = changes.pop("model", None) or model()
    peft = changes.pop("peft_config", None)
    reward = changes.pop("reward", share_of_digits)
    data = changes.pop("data", None) or prompts()
    kind = base if method is None else with_method(base, method, lag)
    built = kind(
        model=made,
        args=config(folder, **changes),
        reward_funcs=reward,
        train_dataset=data,
        processing_class=tokenizer(),
        peft_config=peft,
    )
    built.remove_callback(PrinterCallback)
    return built
