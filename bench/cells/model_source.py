"""Where a language model is, and what identifies it in a cell's configuration."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from vcpo_bench.errors import UsageError, how_to_install

_BLOCK = 2**24
_WEIGHTS = (".safetensors", ".bin", ".model", ".jinja")
_SETTINGS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
             "vocab.json", "vocab.txt", "merges.txt")  # fmt: skip


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
    """The folder of a language model; a name on the Hugging Face hub is downloaded first.

    Raises:
        UsageError: There is neither such a folder nor such a name on the hub.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"--model {source}: the folder has no config.json; name the folder of a saved model")
        return path.resolve()
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
            f"--model {source}: no such folder, and the download from the hub failed ({type(error).__name__})"
        ) from error
