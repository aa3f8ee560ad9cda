"""What the scoreboard needs of each cell's curves, kept in the results folder: thousands of tables open slowly.

The file is derived: it can be deleted at any time, and is written again. Nothing in it is believed unless it carries
the checksum of the cell as it is now and was computed by the same code. The tables themselves are still verified, every
bit, at every use: reading bytes is cheap, decoding them is not.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench import records
from vcpo_bench.analysis.cell_files import CellSeal
from vcpo_bench.analysis.collapse.rule import KINDS
from vcpo_bench.analysis.comparison.scoreboard import curve_facts
from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import CHECKSUM, read_sealed, verified_bytes, write_sealed
from vcpo_bench.progress import track

FILE = ".curve-facts.json"
"""In a results folder: the columns of `curve_facts` of its ended cells, sealed."""

_READ = (records.STEPS_FILE, records.EVALS_FILE)
"""The tables that `curve_facts` is computed from."""
_COLUMNS = [
    *("final_reward", "final_greedy", "final_step", "best_reward", "start_reward", "median_ess", "lag_mean", "lag_max"),
    *("lag_at_onset", "event", "onset", "last_step", "collapsed"),
]
_NUMBERS = [name for name in _COLUMNS if name not in ("event", "collapsed")]


def kept_curve_facts(results: Results) -> pd.DataFrame:
    """`curve_facts`, computed only for the cells whose facts are not kept yet; those are kept from now on.

    A cell without checksums, or one that is running, is computed each time. A folder that cannot be written keeps
    nothing.
    """
    known: dict[str, dict[str, Any]] = {}
    for folder in results.folders:
        known |= _read(folder / FILE)
    cells = list(zip(results.cells["key"], results.cells["path"], strict=True))
    kept = {
        key: known[key]["facts"]
        for key, path in track(cells, "verifying cells", len(cells))
        if key in known and _is_current(known[key], path, results)
    }
    new = [key for key, _ in cells if key not in kept]
    if not new:
        return _table(kept)
    fresh = curve_facts(results.select(new))
    _write(results, kept, fresh)
    if not kept:
        return fresh
    return pd.concat([_table(kept), fresh]).loc[[key for key, _ in cells]]


def _is_current(entry: Mapping[str, Any], path: str, results: Results) -> bool:
    """Whether facts belong to the cell as it is now, and its tables are what they were computed from."""
    seal = results.seals.get(path)
    if seal is None or entry.get("cell") != seal.checksum:
        return False
    try:
        for name in _READ:
            verified_bytes(Path(path) / name, seal.files)
    except (DamagedResultError, OSError):  # who reads the table will say so
        return False
    return True


def _table(facts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(list(facts.values()), index=pd.Index(list(facts), name="key"), columns=_COLUMNS)


def _write(results: Results, kept: Mapping[str, Mapping[str, Any]], fresh: pd.DataFrame) -> None:
    """Keep the facts of every cell that has checksums and undamaged tables, in the folder of the cell."""
    damaged = results.damaged_keys()
    rows = {**kept, **dict(zip(fresh.index, fresh.to_dict("records"), strict=True))}
    by_folder: dict[Path, dict[str, Any]] = {folder: {} for folder in results.folders}
    for key, path in zip(results.cells["key"], results.cells["path"], strict=True):
        seal = results.seals.get(path)
        if seal is not None and key not in damaged and seal.files.keys() >= set(_READ):
            by_folder[Path(path).parents[1]][key] = _entry(seal, rows[key])
    for folder, entries in by_folder.items():
        with suppress(OSError):  # results of others, a read-only or a full disk
            if entries:
                write_sealed(folder / FILE, {"code": _code(), "cells": entries}, cover=False, compact=True)


def _entry(seal: CellSeal, facts: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in facts.items()}
    return {"cell": seal.checksum, "facts": plain}


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """The entries of a file by key; none if there is no file, it is damaged, or other code wrote it."""
    try:
        values = read_sealed(file)
    except (DamagedResultError, OSError):
        return {}
    cells = values.get("cells") if CHECKSUM in values and values.get("code") == _code() else None
    return {key: one for key, one in cells.items() if _is_entry(one)} if isinstance(cells, dict) else {}


def _is_entry(entry: object) -> bool:
    """Whether an entry has what `_entry` writes: the folder may be a stranger's."""
    facts = entry.get("facts") if isinstance(entry, dict) else None
    if not isinstance(facts, dict) or facts.keys() != set(_COLUMNS):
        return False
    numbers = all(isinstance(facts[name], int | float) for name in _NUMBERS)
    return numbers and facts["event"] in KINDS and isinstance(facts["collapsed"], bool)


@cache
def _code() -> str:
    """What the facts depend on besides the tables: the code of this package's analysis, numpy and pandas."""
    rooms = Path(__file__).resolve().parents[2]
    files = sorted(file for room in ("analysis", "records") for file in (rooms / room).rglob("*.py"))
    total = 0
    for file in files:
        total = zlib.crc32(file.read_bytes(), total)
    return f"{total:08x} numpy {np.__version__} pandas {pd.__version__}"
