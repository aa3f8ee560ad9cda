"""What a command line says about a language model, and what of it identifies a cell."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.errors import UsageError

_BLOCK = 2**24
_WEIGHTS = (".safetensors", ".bin", ".model", ".jinja")
_SETTINGS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
             "vocab.json", "vocab.txt", "merges.txt")  # fmt: skip


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A language model and how it is trained.

    Attributes:
        source: Folder, or name on the Hugging Face hub.
        dtype: `float32` or `bfloat16`.
        lora: Rank of adapters; 0: all weights.
        chat: Use the tokenizer's chat template, where it has one.
        sampler: Sampler expression.
        max_response: Longest response in tokens; 0: what the task suggests.
        micro_tokens: Most positions of one pass of the learner; 0: no limit.
        checkpointing: Compute activations again instead of keeping them.
    """

    source: str
    dtype: str = "float32"
    lora: int = 0
    chat: bool = True
    sampler: str = "torch"
    max_response: int = 0
    micro_tokens: int = 0
    checkpointing: bool = False

    @property
    def folder(self) -> Path:
        """Where the model is, downloaded first if it has to be.

        Raises:
            UsageError: There is neither such a folder nor such a name.
        """
        return find(self.source)

    def fields(self) -> dict[str, Any]:
        """The fields of `CellConfig` that say all this.

        Raises:
            UsageError: The model is not there or a value cannot be used.
        """
        if self.dtype not in ("float32", "bfloat16"):
            raise UsageError(f"--dtype {self.dtype}: choose float32 or bfloat16")
        for flag, value in (
            ("lora", self.lora),
            ("max-response", self.max_response),
            ("micro-tokens", self.micro_tokens),
        ):
            if value < 0:
                raise UsageError(f"--{flag} {value}: must be at least 0")
        return {
            "model": f"{self.source.rstrip('/').rpartition('/')[2] or 'model'}@{fingerprint(self.folder)}",
            "dtype": self.dtype,
            "lora": self.lora,
            "chat": self.chat,
            "sampler": SAMPLERS.parse(self.sampler).text(),
            "max_response": self.max_response,
            "micro_tokens": self.micro_tokens,
            "checkpointing": self.checkpointing,
        }

    def task(self, expression: str) -> tuple[str, int]:
        """Canonical expression and longest response of a task in words."""
        task = text_task(expression)
        return task.canonical, self.max_response or task.max_response


def recorded_model(key: str, recorded: str, source: str) -> Path:
    """The folder of the language model that a recorded cell began with.

    Args:
        key: Key of the cell.
        recorded: What the cell says of its model (`CellConfig.model`).
        source: Folder or name given with `--model`; may be empty.

    Raises:
        UsageError: None is given, it is not there, or it holds other files.
    """
    name, _, trained = recorded.partition("@")
    if not source:
        raise UsageError(f"{key}: the cell trained the language model {name}; say where it is with --model")
    folder = find(source)
    if fingerprint(folder) != trained:
        raise UsageError(f"--model {source}: not the files the cell began with ({recorded})")
    return folder


@cache
def fingerprint(folder: Path) -> str:
    """Ten hex digits of the hash of everything in a model's folder that decides what it computes."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in _WEIGHTS or path.name in _SETTINGS:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
    return digest.hexdigest()[:10]


@cache
def find(source: str) -> Path:
    """The folder of a language model, downloaded first if it is a name on the hub.

    Raises:
        UsageError: There is neither such a folder nor such a name.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"--model {source}: the folder holds no config.json; give the folder of a saved model")
        return path.resolve()
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise UsageError(
            f"--model {source}: no such folder, and names on the hub need: pip install 'vcpo-bench[hf]'"
        ) from error
    try:
        patterns = ["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"]
        return Path(snapshot_download(source, allow_patterns=patterns))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"--model {source}: no such folder, and the hub did not give it ({type(error).__name__})"
        ) from error
