"""Seeded damage to results folders: what disks, networks and people do to files, and what an attacker does."""

import json
import os
import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.records import CELLS

VALUES: list[Any] = [
    *(None, True, -1, 0, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\x1b[2J", "../../../evil", [], {}),
    *([1], {"a": {}}, "9" * 5000, -(2**63), "nan", 0.5),
]
"""What a JSON value is replaced with."""


def damage(folder: Path, chance: random.Random) -> str:
    """Damage one file of a folder; returns what was done, for the report of a failure."""
    file = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    kinds = [*_ANY, *(_JSON if file.suffix == ".json" else ()), *(_PARQUET if file.suffix == ".parquet" else ())]
    kind = chance.choice(kinds)
    try:
        detail = kind(file, chance)
    except (ValueError, LookupError, RecursionError, pa.ArrowException):  # damaged before: it has no values to change
        kind, detail = remove, ""
        remove(file, chance)
    return f"{kind.__name__} {file.relative_to(folder)} {detail or ''}"


def forge(folder: Path, chance: random.Random) -> str:
    """Change values of one file of a folder and seal its cell again, as only somebody who means to do harm would."""
    cells = sorted(path.parent for path in folder.glob(f"{CELLS}/*/cell.json"))
    cell = chance.choice(cells)
    file = chance.choice(sorted(cell.iterdir()))
    kinds = [become_pipe, become_link]
    if file.suffix == ".parquet":
        kinds += [change_column, change_column, add_column, add_column, change_text, change_rows, many_rows] * 3
    if file.name == "cell.json":
        kinds += [change_value] * 20
    kind = chance.choice(kinds)
    try:
        detail = kind(file, chance)
    except (ValueError, LookupError, RecursionError, pa.ArrowException, OSError):
        kind, detail = become_link, become_link(file, chance)
    if (cell / "cell.json").is_file() and not (cell / "cell.json").is_symlink():
        values = json.loads((cell / "cell.json").read_text())
        if isinstance(values, dict):
            _seal(cell, values, chance)
    return f"{kind.__name__} {file.relative_to(folder)} {detail or ''}"


def _seal(cell: Path, values: dict[str, Any], chance: random.Random) -> None:
    for name in ("files", "checksum"):
        values.pop(name, None)
    try:
        write_sealed(cell / "cell.json", values)
    except (ValueError, TypeError, DamagedResultError):
        return
    if chance.random() < 0.1:  # a name that no file has
        sealed = json.loads((cell / "cell.json").read_text())
        sealed["files"][chance.choice(["a\0b", "\ud800", "..", "", ".", "x" * 300, "/etc/passwd"])] = {"bytes": 1}
        sealed["checksum"] = "0" * 8
        text = json.dumps(sealed, indent=1, sort_keys=True)
        (cell / "cell.json").write_text(text.replace('"0' + "0" * 7, f'"{zlib.crc32(text.encode()):08x}'))


def flip_bits(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 1, 8])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def truncate(file: Path, chance: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: chance.randrange(file.stat().st_size)])


def fill(file: Path, chance: random.Random) -> None:
    file.write_bytes(chance.choice([b"", b"\0" * file.stat().st_size, chance.randbytes(200), b"{}", b"[]", b"null"]))


def remove(file: Path, chance: random.Random) -> None:
    file.unlink()


def become_folder(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


def become_loop(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.symlink_to(file.name)


def swap(file: Path, chance: random.Random) -> str:
    """Another file of the same folder takes its place."""
    other = chance.choice(sorted(path for path in file.parent.iterdir() if path.is_file()))
    if other != file:
        shutil.copyfile(other, file)
    return other.name


def rename_folder(file: Path, chance: random.Random) -> None:
    target = file.parent.with_name(chance.choice(["x", "a b", "é", ".hidden", "x.partial", "[red]"]))
    if file.parent.parent.name == CELLS and not target.exists():  # damaged before
        file.parent.rename(target)


def nest_deeply(file: Path, chance: random.Random) -> None:
    file.write_text("[" * 100_000 + "]" * 100_000)


def change_value(file: Path, chance: random.Random) -> str:
    content = json.loads(file.read_text())
    holder, key = chance.choice(list(_places(content)))
    holder[key] = value = chance.choice(VALUES)
    file.write_text(json.dumps(content))
    return f"{key}={str(value)[:40]}"


def drop_value(file: Path, chance: random.Random) -> str:
    content = json.loads(file.read_text())
    holder, key = chance.choice([place for place in _places(content) if isinstance(place[0], dict)])
    del holder[key]
    file.write_text(json.dumps(content))
    return str(key)


def change_column(file: Path, chance: random.Random) -> str:
    """A column is dropped, of another type, without values, extreme, or there twice."""
    table = pq.read_table(file)
    place = chance.randrange(table.num_columns)
    name = table.column_names[place]
    if chance.random() < 0.3:
        table = table.remove_column(place)
    else:
        other = chance.choice(
            ["x", None, -1, 0, 2**62, float("nan"), float("inf"), 1e308, 1e300, -1e300, 1e-300, b"\xff", [1], True]
        )
        table = table.set_column(place, name, pa.array([other] * table.num_rows))
    pq.write_table(table, file)
    return name


def add_column(file: Path, chance: random.Random) -> str:
    """A column that no version has, or one that is there already."""
    table = pq.read_table(file)
    name = chance.choice(["key", "index", "row", "method", table.column_names[0], "a b", "\x1b[2J", "x" * 3000])
    value = chance.choice([1, 0.5, "x", None, [1], {"a": 1}, True, b"\xff"])
    pq.write_table(table.append_column(name, pa.array([value] * table.num_rows)), file)
    return name[:20]


def change_text(file: Path, chance: random.Random) -> str:
    """Text that is missing, long, or no UTF-8."""
    table = pq.read_table(file)
    places = [place for place, kind in enumerate(table.schema.types) if kind == pa.string()]
    place = chance.choice(places)
    content = chance.choice([None, b"\xff\xfe", b"\xed\xa0\x80", b"", b"m" * 100_000, b"\0"])
    values = pa.array([content] * table.num_rows, pa.binary())
    texts = pa.StringArray.from_buffers(len(values), values.buffers()[1], values.buffers()[2], values.buffers()[0])
    pq.write_table(table.set_column(place, table.column_names[place], texts), file)
    return table.column_names[place]


def many_rows(file: Path, chance: random.Random) -> str:
    """Far more rows than the cell made, all equal, in a small file."""
    table = pq.read_table(file)
    rows = pa.array([0] * 200_000, pa.int64())
    pq.write_table(table.slice(0, 1).take(rows), file, compression="zstd")
    return str(len(rows))


def become_pipe(file: Path, chance: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def become_link(file: Path, chance: random.Random) -> str:
    target = chance.choice(["/dev/zero", "/dev/null", "/etc/hostname", "nowhere", "."])
    file.unlink()
    file.symlink_to(target)
    return target


def change_rows(file: Path, chance: random.Random) -> str:
    """No rows, one row, rows twice or in another order."""
    table = pq.read_table(file)
    kept = chance.choice([[], [0], [*range(table.num_rows)] * 2, [*range(table.num_rows)][::-1]])
    pq.write_table(table.take(pa.array(kept, pa.int64())) if table.num_rows else table, file)
    return str(len(kept))


Damage = Callable[[Path, random.Random], "str | None"]
_ANY: tuple[Damage, ...] = (flip_bits, truncate, fill, remove, become_folder, become_loop, swap, rename_folder)
_JSON: tuple[Damage, ...] = (nest_deeply, *[change_value] * 4, *[drop_value] * 2)
_PARQUET: tuple[Damage, ...] = (*[change_column] * 4, *[change_rows] * 2)


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) of a JSON value, nested ones too."""
    items = list(content.items()) if isinstance(content, dict) else list(enumerate(content))
    found = [(content, key) for key, _ in items]
    for _, value in items:
        if isinstance(value, dict | list):
            found += _places(value)
    return found
