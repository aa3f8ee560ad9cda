"""A results folder: who may write to it, which cells have ended, and which are damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.atomic import check_writable
from vcpo_bench.files.checksums import read_sealed, seal_of, verify_sizes, write_sealed
from vcpo_bench.files.claims import Claim, ClaimHeldError, ClaimLostError
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.files.parquet import is_whole
from vcpo_bench.files.regular import check_itself
from vcpo_bench.records import (
    CELL_FILE,
    CELLS,
    EVALS_FILE,
    GRID_FILE,
    LAGS_FILE,
    PARTIAL_SUFFIX,
    RULES_VERSION,
    STEPS_FILE,
)
from vcpo_bench.records.cell_file import read_cell_file

TABLES = (STEPS_FILE, EVALS_FILE, LAGS_FILE)
"""Tables that every ended cell has."""
WRITER = ".writer"
"""Folder that the one command which plans cells claims; it is there only while one does."""
_DAMAGED = "damaged"


class ResultsFolder:
    """A results folder opened for writing.

    Args:
        path: The folder; created if missing.

    Raises:
        UsageError: The path is a file, cannot be written, is a folder with other contents, or has a link for cells.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = path / CELLS
        self._claim: Claim | None = None
        try:
            if path.is_dir() and any(path.iterdir()) and not ((path / GRID_FILE).exists() or self.cells.is_dir()):
                raise UsageError(f"--out {path}: the folder holds other files; name a new folder or a results folder")
            path.mkdir(parents=True, exist_ok=True)
            made(path, CELLS)
            refuse_link(path / WRITER)
            check_writable(path / ".write")
        except OSError as error:
            raise UsageError(f"--out {path}: cannot write there ({error.strerror}); name another folder") from error

    @contextmanager
    def locked(self, wait: bool, say: Callable[[str], object] = lambda _: None) -> Iterator[None]:
        """Be the only one that plans cells in the folder, inside the block; a process that ended never is.

        Args:
            wait: Wait for another process that does.
            say: Called with one line when waiting takes long.

        Raises:
            UsageError: Another process does, and `wait` is False.
        """
        with ExitStack() as held:
            try:
                self._claim = held.enter_context(Claim(self.path / WRITER, say, wait))
            except ClaimHeldError as error:
                busy = f"another run ({error}) is writing there"
                raise UsageError(f"--out {self.path}: {busy}; add --wait to queue behind it") from error
            yield

    def check(self) -> None:
        """Make sure, before writing what only one command may write, that this is still the one; inside `locked`.

        Raises:
            UsageError: It stood still for so long that another command took the folder over.
        """
        if self._claim is None:
            raise ValueError(f"{self.path} is not locked")
        try:
            self._claim.check()
        except ClaimLostError as error:
            taken = "another command took the folder over while this one stood still, and goes on; this one ends"
            raise UsageError(f"--out {self.path}: {taken}") from error

    def check_rules(self) -> None:
        """Refuse to add cells beside those of another version of the rules, which no scoreboard could compare.

        Raises:
            UsageError: The folder holds such cells.
        """
        for file in sorted(self.cells.rglob(CELL_FILE)):
            with suppress(DamagedResultError, OSError):
                version = read_cell_file(file, ended=False).get("rules_version")
                if version not in (None, RULES_VERSION):
                    older = f"{file.parent.name} ran under rules {version}, and cells now run under {RULES_VERSION}"
                    raise UsageError(f"--out {self.path}: {older}: results do not compare; name another folder")

    def status(self, key: str) -> str | None:
        """Status of a cell that has ended; None if it has not. See `status_of`.

        Raises:
            UsageError: A link stands in for it: to run it would be to do without what the link leads to.
        """
        refuse_link(self.cells / key)
        return status_of(self.cells / key)

    def set_aside(self, key: str) -> Path:
        """Move a damaged cell to the folder `damaged`; returns where it is now."""
        return self.move_to_damaged(self.cells / key)

    def move_to_damaged(self, path: Path) -> Path:
        """Move a file or folder to the folder `damaged`, numbered; returns where it is now."""
        number, stem, suffix = 1, *((path.stem, path.suffix) if path.is_file() else (path.name, ""))
        while (aside := self.path / _DAMAGED / f"{stem}-{number}{suffix}").exists():
            number += 1
        made(self.path, _DAMAGED)
        return path.rename(aside)

    def update_grid(self, cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Merge cells into `grid.json`; a cell requested by name is no longer a control only.

        Raises:
            UsageError: See `check`.
        """
        path = self.path / GRID_FILE
        self.check()
        known = self._known_cells(path)
        for key, entry in cells.items():
            control = bool(entry["control"]) and bool(known.get(key, {}).get("control", True))
            known[key] = {**entry, "control": control}
        self.check()  # not before reading alone: what another wrote since would be lost
        write_sealed(path, {"cells": known}, cover=False)

    @staticmethod
    def _known_cells(path: Path) -> dict[str, Any]:
        """The cells of `grid.json`; an unreadable file is renamed, since every grid writes it again."""
        try:
            return dict(read_sealed(path)["cells"]) if path.exists() else {}
        except (KeyError, TypeError, ValueError):
            path.replace(path.with_name(f"damaged-{GRID_FILE}"))
            return {}


def ended_keys(path: Path) -> set[str]:
    """Keys of the cells of a results folder that have ended without an error; empty where there is no folder."""
    keys = set()
    for folder in (path / CELLS).glob("*"):
        with suppress(DamagedResultError):
            if not folder.name.endswith(PARTIAL_SUFFIX) and status_of(folder) not in (None, "error"):
                keys.add(folder.name)
    return keys


def status_of(folder: Path) -> str | None:
    """Status of the ended cell in a folder; None if there is no folder.

    It looks at every file but reads `cell.json` only: many cells are listed often. Whoever reads a table verifies it,
    and `check.check_folder` verifies everything.

    Raises:
        DamagedResultError: `cell.json` is damaged, or a table is missing or was cut short.
        OSError: The disk cannot be read at the moment.
    """
    check_itself(folder)
    if not folder.is_dir():
        return None
    facts = read_cell_file(folder / CELL_FILE)
    seal = seal_of(facts)
    if seal is not None:
        verify_sizes(folder, seal)
    for name in set(TABLES) | {path.name for path in folder.glob("*.parquet") if seal is None}:
        _check_whole(folder / name)
    return str(facts["status"])


def _check_whole(table: Path) -> None:
    """Check that a table is there from its first byte to its last."""
    try:
        if is_whole(table):
            return
    except FileNotFoundError as error:
        raise DamagedResultError("is missing", table) from error
    raise DamagedResultError("cannot be read (its end is missing)", table)
