"""Where a language model is, and what identifies it in a cell's configuration."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from vcpo_bench.bench.policies.pretrained.released import RELEASED
from vcpo_bench.bench.policies.pretrained.store import pretrained_folder
from vcpo_bench.errors import DamagedResultError, UsageError, how_to_install
from vcpo_bench.files.regular import read_regular

_BLOCK = 2**24
_WEIGHTS = (".safetensors", ".bin", ".model", ".jinja")
_SETTINGS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
             "vocab.json", "vocab.txt", "merges.txt")  # fmt: skip

ORIGIN_FILE = "vcpo_bench_warmup.json"
"""File beside the weights of a model made by `vcpo-bench lab warmup` that says how."""


def default_task(source: str) -> str:
    """Expression of a task that suits a model: the one it was warmed up on, or sums that any of them may continue."""
    return str(_origin(source).get("task") or "quiz(largest=5,shots=1)")


def is_new(source: str) -> bool:
    """Whether a model began with random weights in a warm-up of ours; else it is taken for a pretrained one."""
    return str(_origin(source).get("from", "")).startswith("llama(")


def _origin(source: str) -> dict[str, Any]:
    """What a warm-up wrote beside the weights; nothing for every other model."""
    try:
        origin = json.loads(read_regular(Path(source).expanduser() / ORIGIN_FILE))
    except (OSError, ValueError, DamagedResultError):
        return {}
    return origin if isinstance(origin, dict) else {}


def model_identity(source: str) -> str:
    """What a cell's configuration says of a language model: name of its folder and hash of its files, `NAME@HASH`.

    Raises:
        UsageError: There is neither such a folder nor such a name on the hub.
    """
    return f"{source.rstrip('/').rpartition('/')[2] or 'model'}@{fingerprint(model_folder(source))}"


def recorded_model(key: str, recorded: str, source: str) -> Path:
    """The folder of the language model that a recorded cell started from.

    Args:
        key: Key of the cell.
        recorded: Identity of its model (`CellConfig.model`).
        source: Folder or name given with `--model`; may be empty.

    Raises:
        UsageError: None is given, it cannot be found, or its files differ from the recorded ones.
    """
    name, _, trained = recorded.partition("@")
    if not source:
        raise UsageError(f"{key}: this cell trained the language model {name}; name its folder with --model")
    folder = model_folder(source)
    if fingerprint(folder) != trained:
        raise UsageError(f"--model {source}: its files differ from those the cell started from ({recorded})")
    return folder


@cache
def fingerprint(folder: Path) -> str:
    """Ten hex digits of the hash of all files in a model's folder that affect what it computes."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in _WEIGHTS or path.name in _SETTINGS:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
    return digest.hexdigest()[:10]


@cache
def model_folder(source: str) -> Path:
    """The folder of a language model. What is none yet is fetched or converted first.

    Args:
        source: A folder, a GGUF file, the name of a released model (`pretrained.released`), or one on the hub.

    Raises:
        UsageError: There is nothing of that name, or it cannot be fetched or converted.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"--model {source}: the folder has no config.json; name the folder of a saved model")
        return path.resolve()
    if made := pretrained_folder(source):
        return made
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise UsageError(
            f"--model {source}: no such folder, and downloads from the hub need: {how_to_install('hf')}"
        ) from error
    try:
        patterns = ["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"]
        return Path(snapshot_download(source, allow_patterns=patterns))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"--model {source}: no such folder, and the download from the hub failed ({type(error).__name__}); "
            f"{' and '.join(RELEASED)} come without the hub"
        ) from error
