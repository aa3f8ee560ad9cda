"""What comes home: one JSON of all measurements, and archives small enough to travel that another call resumes from."""

from __future__ import annotations

import json
import tarfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ledger
import stages
from launch import Place

PART_BYTES = 14 * 2**20
"""Size of an archive at which the next one is begun."""
PARTS = 6
CELL = "cell.json"
"""The file that a run leaves when it has ended."""


def gather(place: Place, out: Path) -> None:
    """Write `gpu-day-PLACE.json`, and `gpu-day-PLACE-N.tar.gz` with the records and the ended runs of `home`."""
    paths = _in_order(place.folder)
    ledger.write(out / f"gpu-day-{place.name}.json", {"measurements": [ledger.read(path) for path in paths]})
    for old in out.glob(f"gpu-day-{place.name}-*.tar.gz"):
        old.unlink()
    ended = {path.parent for path in place.folder.glob(f"home/**/{CELL}")}
    left = deque([*paths, *sorted(ended, key=lambda folder: folder.stat().st_mtime)])
    for number in range(1, PARTS + 1):
        if left:
            _pack(left, place.folder, out / f"gpu-day-{place.name}-{number}.tar.gz")
    if left:
        print(f"{len(left)} ended runs do not fit into {PARTS} archives: another machine would run them again")


def _pack(left: deque[Path], folder: Path, path: Path) -> None:
    """Move files and folders from the queue into an archive until it is large enough."""
    with path.open("wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        while left and raw.tell() < PART_BYTES:
            one = left.popleft()
            archive.add(one, str(one.relative_to(folder)))


def unpack(archives: Sequence[Path], folder: Path) -> None:
    """Put what earlier archives hold where it was; files that are there stay."""
    for path in archives:
        with tarfile.open(path) as archive:
            missing = [member for member in archive if not (folder / member.name).exists()]
            archive.extractall(folder, missing, filter="data")


def measurements(out: Path) -> list[dict[str, Any]]:
    """Every measurement in a folder of results."""
    found = sorted(out.glob("gpu-day-*.json"))
    return [facts for path in found for facts in json.loads(path.read_text())["measurements"]]


def _in_order(folder: Path) -> list[Path]:
    """The records that are there, as the stages have them."""
    every = (ledger.path_of(folder, stage, step.name) for stage, steps in stages.STAGES.items() for step in steps)
    return [path for path in every if path.is_file()]
