"""Sealed JSON files: each holds a checksum of itself and of every file beside it, so that a flipped bit is noticed.

The checksum is CRC-32: it notices every flipped bit and every damaged stretch of up to 32 bits for certain, and any
other damage but for one case in 4 billion. It is no protection against forgery.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.atomic import write_bytes
from vcpo_bench.files.regular import open_regular, read_regular, size_of

FILES, CHECKSUM = "files", "checksum"
"""Keys that a seal adds: the size in bytes and the checksum of every file, and the checksum of the sealed file."""

_CHUNK = 1 << 20
_BLANK = b"00000000"
_OWN = re.compile(rb'^ "checksum": "([0-9a-f]{8})"', re.MULTILINE)  # one space: only at the top level

Seal = Mapping[str, Mapping[str, Any]]
"""The entries of `files`: by name, `bytes` and `crc32`."""


def write_sealed(path: Path, values: Mapping[str, Any], cover: bool = True) -> None:
    """Write a sealed JSON file atomically.

    Args:
        path: The file.
        values: What it says.
        cover: Whether it covers the files beside it; folders and hidden files never.
    """
    covered = {one.name: _entry(one) for one in _beside(path)} if cover else {}
    marked = {**values, FILES: covered, CHECKSUM: _BLANK.decode()}
    text = (json.dumps(marked, indent=1, sort_keys=True) + "\n").encode()
    own = _OWN.search(text)
    assert own is not None
    write_bytes(path, text[: own.start(1)] + _crc(text) + text[own.end(1) :])


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a JSON object and verify its own checksum; a file of an earlier version without one is read as it is.

    Raises:
        DamagedResultError: It is missing, is no JSON object, or does not match its checksum.
        OSError: The disk cannot be read at the moment.
    """
    try:
        content = read_regular(path)
    except FileNotFoundError as error:
        raise DamagedResultError("is missing", path) from error
    try:
        values = json.loads(content)
        json.dumps(values, ensure_ascii=False).encode()  # half a surrogate pair is JSON, and no text
    except (ValueError, RecursionError) as error:
        raise DamagedResultError("cannot be read (it is not JSON)", path) from error
    if not isinstance(values, dict):
        raise DamagedResultError("cannot be read (it is no JSON object)", path)
    if not {FILES, CHECKSUM} & values.keys():
        return values
    own = _OWN.search(content)
    matches = own and _crc(content[: own.start(1)] + _BLANK + content[own.end(1) :]) == own[1]
    if not matches or not _is_seal(values.get(FILES)):
        raise DamagedResultError("does not match its checksum", path)
    return values


def seal_of(values: Mapping[str, Any]) -> Seal | None:
    """The checksums in a sealed file that `read_sealed` returned; None: it was written without any."""
    return values.get(FILES)


def verify_sizes(folder: Path, seal: Seal) -> None:
    """Check that every sealed file is there with its size, without reading any.

    Raises:
        DamagedResultError: One is missing, or longer or shorter than it was.
    """
    for name, entry in seal.items():
        try:
            size = size_of(folder / name)
        except FileNotFoundError as error:
            raise DamagedResultError("is missing", folder / name) from error
        if size != entry["bytes"]:
            raise DamagedResultError(f"has {size} bytes instead of {entry['bytes']}", folder / name)


def verify_files(folder: Path, seal: Seal) -> None:
    """Check every bit of every sealed file.

    Raises:
        DamagedResultError: One is missing or does not match its checksum.
        OSError: The disk cannot be read at the moment.
    """
    verify_sizes(folder, seal)
    for name, entry in seal.items():
        if _entry(folder / name) != entry:
            raise DamagedResultError("does not match its checksum", folder / name)


def verify_sealed(path: Path) -> dict[str, Any]:
    """Read a sealed file after checking every bit of it and of the files it covers.

    Raises:
        DamagedResultError: A file is missing, has no checksums or does not match its own.
        OSError: The disk cannot be read at the moment.
    """
    values = read_sealed(path)
    seal = seal_of(values)
    if seal is None:
        raise DamagedResultError("has no checksums", path)
    verify_files(path.parent, seal)
    return values


def verified_bytes(path: Path, seal: Seal | None) -> bytes:
    """The contents of a file, checked if a seal is given.

    Raises:
        DamagedResultError: It is missing, is not sealed, or does not match its checksum.
        OSError: The disk cannot be read at the moment.
    """
    try:
        content = read_regular(path)
    except FileNotFoundError as error:
        raise DamagedResultError("is missing", path) from error
    if seal is not None:
        entry = seal.get(path.name)
        if entry is None:
            raise DamagedResultError("is not among the files that were recorded", path)
        if entry != {"bytes": len(content), "crc32": _crc(content).decode()}:
            raise DamagedResultError("does not match its checksum", path)
    return content


def _is_seal(value: object) -> bool:
    """Whether checksums are given for plain names: a name with a folder in it could lead anywhere."""
    entries = value.items() if isinstance(value, dict) else [("", None)]
    return all(_is_name(name) and isinstance(entry, dict) and "bytes" in entry for name, entry in entries)


def _is_name(name: str) -> bool:
    """Whether a file can have this name; NUL and halves of surrogate pairs are errors of their own when it is asked."""
    return name.isprintable() and Path(name).name == name != ".." and 0 < len(name.encode()) < 256


def _beside(path: Path) -> list[Path]:
    others = sorted(path.parent.iterdir())
    return [one for one in others if one.is_file() and one.name != path.name and not one.name.startswith(".")]


def _entry(path: Path) -> dict[str, Any]:
    size = total = 0
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            size, total = size + len(chunk), zlib.crc32(chunk, total)
    return {"bytes": size, "crc32": f"{total:08x}"}


def _crc(content: bytes) -> bytes:
    return f"{zlib.crc32(content):08x}".encode()
