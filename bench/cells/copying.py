"""Copying what a results folder holds, and nothing else: a link in it may lead to anything on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from vcpo_bench.bench.cells.cell_store import CHECKPOINT, KEPT, numbered
from vcpo_bench.files.checksums import read_sealed, seal_of, verify_files
from vcpo_bench.files.durable import sync_file, sync_folder, sync_names
from vcpo_bench.files.folders import is_folder, made
from vcpo_bench.files.regular import check_itself, open_regular
from vcpo_bench.records import CELL_FILE, STATE_FILE


def copy_cell(cell: Path, draft: Path) -> None:
    """Copy the folder of an ended cell, files and checkpoints, to `draft`; one that an earlier copy left is removed.

    Raises:
        DamagedResultError: A file does not match its checksum, or is none but a link, a pipe or a device.
    """
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    copy_sealed(cell / CELL_FILE, draft)
    for place, prefix in ((KEPT, ""), ("", CHECKPOINT)):
        check_itself(cell / place)
        for checkpoint in numbered(cell / place, prefix).values():
            copy_sealed(checkpoint / STATE_FILE, made(draft, *checkpoint.relative_to(cell).parts))
    if is_folder(draft / KEPT):
        sync_names(draft / KEPT)
    sync_names(draft)


def copy_sealed(sealed: Path, into: Path) -> None:
    """Copy a sealed file and every file it names, verified; or, where an early version wrote no seal, those beside it.

    Raises:
        DamagedResultError: See `copy_cell`.
    """
    seal = seal_of(read_sealed(sealed))
    if seal is None:
        others = {path.name for path in sealed.parent.iterdir() if path.is_file() and not path.is_symlink()}
        names = {name for name in others if not name.startswith(".")}
    else:
        verify_files(sealed.parent, seal)
        names = {*seal, sealed.name}
    for name in names:
        copy_file(sealed.parent / name, into / name)
    if seal is not None:
        verify_files(into, seal)
    sync_folder(into)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; raises as `copy_cell` does."""
    with open_regular(source) as read, target.open("xb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
    sync_file(target)


def left_out(source: Path, copy: Path) -> list[Path]:
    """What a copy of a folder lacks, inside the folder: hidden files are nobody's loss."""
    return sorted(path for path in _names(source) - _names(copy) if not path.name.startswith("."))


def _names(folder: Path) -> set[Path]:
    """Paths of files and links in a folder, inside it; no link is followed."""
    found = set()
    for here, folders, files in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        found |= {Path(here, name).relative_to(folder) for name in (*files, *links)}
    return found
