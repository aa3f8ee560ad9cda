"""Seeded damage to results folders: what disks, networks and people do to files."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
        other = chance.choice(["x", None, -1, 2**62, float("nan"), float("inf"), 1e308, b"\xff", [1], True])
        table = table.set_column(place, name, pa.array([other] * table.num_rows))
    pq.write_table(table, file)
    return name


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
