"""Which files of a folder are the log of a run, and which format they have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from vcpo_bench.analysis.logs.errors import NotYetError, SeveralRunsError
from vcpo_bench.analysis.logs.readers.own_cells import cells_of, is_cell, refuse_moved_cells
from vcpo_bench.analysis.logs.readers.stores import SQLITE_MAGIC
from vcpo_bench.analysis.logs.readers.token_dumps import dump_step
from vcpo_bench.errors import UsageError

KINDS = ("cell", "jsonl", "trainer_state", "tensorboard", "wandb", "sqlite", "mlruns", "csv", "console")
"""Formats, the preferred one first: where a folder holds several, they say the same of one run."""

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".wandb": "wandb",
    ".csv": "csv",
    ".tsv": "csv",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}
_CONSOLE = {".log", ".out", ".txt", ".err"}
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin"}
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
"""First bytes of gzip, bzip2, xz and zstd."""
_SKIPPED = {".git", "node_modules", "__pycache__", "code", "artifacts"}
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_MOST_FILES = 200_000


@dataclass
class LogFiles:
    """Files that are read together, in this order.

    Attributes:
        kind: One of `KINDS`.
        name: What tells this source from others of its kind: a folder, or a file.
        files: What to read.
        run: For a database, which run.
    """

    kind: str
    name: str
    files: list[Path] = field(default_factory=list)
    run: str = ""


def find_sources(path: Path) -> tuple[list[LogFiles], list[Path], list[str]]:
    """What a path holds.

    Returns:
        The sources of the preferred format; token dumps; the other formats found, which say the same.

    Raises:
        UsageError: Nothing can be read, or what it is must not be read.
    """
    text, marker, run = str(path).partition("::")
    path = Path(text)
    if is_cell(path):
        return [LogFiles("cell", path.name, [path])], [], []
    if path.is_file():
        step = dump_step(path)
        if step is not None:
            return [], [path], []
        kind = _kind(path)
        return [LogFiles(kind, path.name, [path], run if marker else "")], [], []
    if not path.exists():
        if text.startswith(("http:", "https:")):
            raise UsageError(f"{text}: nothing is read over the network; export the run as CSV and give that file")
        raise NotYetError(f"{path} does not exist")
    if not path.is_dir():
        raise UsageError(f"{path} is a pipe or a device, which is not read; write the log to a file")
    if cells := cells_of(path):
        if len(cells) > 1:
            raise SeveralRunsError(path, cells)
        return [LogFiles("cell", cells[0].name, cells)], [], []
    return _in_folder(path)


def _in_folder(root: Path) -> tuple[list[LogFiles], list[Path], list[str]]:
    found: dict[str, dict[str, LogFiles]] = {}
    dumps: list[Path] = []
    pickles = 0
    for path in _walk(root):
        if dump_step(path) is not None:
            dumps.append(path)
            continue
        if path.suffix in _PICKLES:
            pickles += 1
        kind = _kind_by_name(path)
        if kind is None:
            continue
        name = _group(kind, path, root)
        found.setdefault(kind, {}).setdefault(name, LogFiles(kind, name)).files.append(path)
    if "trainer_state" in found:
        for source in found["trainer_state"].values():
            source.files = [max(source.files, key=_checkpoint)]
    present = [kind for kind in KINDS if kind in found]
    if not present and not dumps:
        refuse_moved_cells(root)
        more = f" ({pickles} pickles are not read: loading one executes code)" if pickles else ""
        raise NotYetError(
            f"{root} holds no log that can be read{more}; give a file, or see docs/diagnose.md for formats"
        )
    chosen = sorted(found[present[0]].values(), key=lambda one: one.name) if present else []
    return chosen, sorted(dumps), present[1:]


def _walk(root: Path) -> Iterable[Path]:
    """Every file of a folder, that of a link to a folder once."""
    stack, count, seen = [root], 0, set[Path]()
    while stack:
        folder = stack.pop()
        if (real := folder.resolve()) in seen:
            continue
        seen.add(real)
        for path in sorted(folder.iterdir()):
            count += 1
            if count > _MOST_FILES:
                raise UsageError(f"{root} holds more than {_MOST_FILES:,} files; give the folder of one run")
            if path.is_dir():
                if path.name not in _SKIPPED:
                    stack.append(path)
            elif path.is_file():
                yield path


def _kind_by_name(path: Path) -> str | None:
    if path.name == "trainer_state.json":
        return "trainer_state"
    if "tfevents" in path.name:
        return "tensorboard"
    if path.parent.parent.name and "metrics" in path.parts and "mlruns" in path.parts and not path.suffix:
        return "mlruns"
    if path.suffix in _CONSOLE:
        return (
            "console"
            if path.name not in ("requirements.txt", "debug.log", "debug-internal.log", "debug-core.log")
            else None
        )
    return _SUFFIXES.get(path.suffix)


def _kind(path: Path) -> str:
    """The format of one file, from its name or its first bytes."""
    if path.suffix in _PICKLES:
        raise UsageError(f"{path} is a pickle, and loading one executes code; export its metrics as JSON lines or CSV")
    if path.suffix == ".swanlab":
        raise UsageError(f"{path}: swanlab's format is internal; export the run as CSV")
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        raise NotYetError(f"{path} is empty")
    if head.startswith(SQLITE_MAGIC):
        return "sqlite"
    if head.startswith(_COMPRESSED):
        raise UsageError(f"{path} is compressed; unpack it and give the file inside")
    named = _kind_by_name(path)
    if named:
        return named
    if head.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x04", b"\x80\x05")):
        raise UsageError(f"{path} is a pickle or archive, and loading one executes code; export its metrics as CSV")
    if head[:4] == b":W&B":
        return "wandb"
    if path.suffix == ".json" and head.lstrip().startswith(b"["):
        raise UsageError(f"{path} is one JSON list; write each of its rows on a line of its own (jq -c '.[]')")
    if path.suffix == ".json" and b'"log_history"' in path.read_bytes():
        return "trainer_state"
    return "jsonl" if head.lstrip().startswith(b"{") and path.suffix == ".json" else "console"


def _group(kind: str, path: Path, root: Path) -> str:
    if kind == "tensorboard":
        return str(path.parent.relative_to(root))
    if kind == "wandb":
        return path.stem  # run-ID: the processes of one run share it
    if kind == "trainer_state":
        holder = path.parent.parent if _CHECKPOINT.fullmatch(path.parent.name) else path.parent
        return str(holder.relative_to(root)) if holder.is_relative_to(root) else "."
    if kind == "mlruns":
        parts = path.parts
        return "/".join(parts[: len(parts) - 1 - parts[::-1].index("metrics")][-2:])
    return str(path.relative_to(root))


def _checkpoint(path: Path) -> int:
    found = _CHECKPOINT.fullmatch(path.parent.name)
    return int(found.group(1)) if found else -1
