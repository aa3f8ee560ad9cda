"""What a call brings home so that another machine continues: measurements, cells that have ended, seconds spent."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import ledger
from carried import FOLDER

if TYPE_CHECKING:
    from launch import Place

CARRIED = FOLDER / "home"
PART = 15 * 2**20
"""Bytes of a file, at most."""
STUDIES = "work/studies"
"""Grids below this folder of a place are continued cell by cell; times of others belong to one machine."""


def restore(place: Place, carried: Path = CARRIED) -> None:
    """Take up what earlier calls brought home; what is here already stays."""
    for facts in ledger.read(carried / ledger.gathered(place)).get("measurements", []):
        path = ledger.path_of(place.folder, facts["stage"], facts["name"])
        if not path.exists():
            ledger.write(path, facts)
    parts = sorted(carried.glob(f"cells-{place.name}.*"))
    if parts:
        with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as archive:
            here = [member for member in archive.getmembers() if not (place.folder / member.name).exists()]
            archive.extractall(place.folder, here, filter="data")


def bring(place: Place, out: Path) -> None:
    """Write the measurements, and the cells that have ended in files of a size that may travel."""
    ledger.gather(place, out)
    for old in out.glob(f"cells-{place.name}.*"):
        old.unlink()
    ended = [path.parent for path in place.folder.glob(f"{STUDIES}/*/cells/*/cell.json")]
    files = [path for folder in ended if folder.suffix != ".partial" for path in folder.iterdir()]
    packed = io.BytesIO()
    if files:
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path in sorted([*files, *place.folder.glob(f"{STUDIES}/*.seconds.json")]):
                archive.add(path, path.relative_to(place.folder), recursive=False)
    data = packed.getvalue()
    for number, at in enumerate(range(0, len(data), PART)):
        (out / f"cells-{place.name}.{number:02}").write_bytes(data[at : at + PART])
