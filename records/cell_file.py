"""Reading `cell.json`: what a cell was and how it ended, with every value of the kind that readers rely on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import read_sealed
from vcpo_bench.records.layout import PARTIAL_SUFFIX, Status
from vcpo_bench.records.settings import SETTINGS

_IDENTITY = ("task", "method", "regime", "staleness", "lr", "seed", "steps")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


Check = tuple[Callable[[object], bool], str]
_MESSAGE: Check = (lambda value: isinstance(value, str), "a text")
_COUNT: Check = (_is_count, "a whole number from 0 on")
_NUMBER: Check = (_is_number, "a finite number")
_TRUTH: Check = (lambda value: isinstance(value, bool), "true or false")
_TEXTS: Check = (
    lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "a list of texts",
)
_MAPPING: Check = (lambda value: isinstance(value, dict), "an object")

_FACTS: dict[str, Check] = {
    **dict.fromkeys(("reason", "error", "rules_version", "ended"), _MESSAGE),
    **dict.fromkeys(("steps_done", "method_version"), _COUNT),
    "seconds": _NUMBER,
    "control": _TRUTH,
    "provenance": _MAPPING,
    "warnings": _TEXTS,
}


def read_cell_file(path: Path, ended: bool = True) -> dict[str, Any]:
    """Read the file `cell.json` of a cell and check its checksum, its key and the kind of every known value.

    Args:
        path: The file, in the folder of the cell or of one of its checkpoints.
        ended: It must say how the cell ended.

    Returns:
        Its values. Those that a version did not write are absent.

    Raises:
        DamagedResultError: It cannot be read, does not match its checksum, lies in the folder of another cell, or
            holds a value of the wrong kind. The message names the file, and with it the cell.
        OSError: The disk cannot be read at the moment.
    """
    facts = read_sealed(path)
    if ended and facts.get("status") not in get_args(Status):
        raise DamagedResultError("has no legal status", path)
    config = facts.get("config")
    if not isinstance(config, dict) or not {"key", "config"} <= facts.keys() or not config.keys() >= set(_IDENTITY):
        raise DamagedResultError("does not say what was run", path)
    if facts["key"] != (own := cell_of(path)):
        raise DamagedResultError(f"is of the cell {facts['key']!r}, not of {own!r}; give the folder its own name", path)
    _check(path, facts)
    for name in config.keys() & SETTINGS.keys():
        if wrong := SETTINGS[name].misread(config[name]):
            raise _wrong(path, f"config.{name}", config[name], wrong)
    return facts


def cell_of(path: Path) -> str:
    """The key that the folder of a file stands for: that of the cell, also for a file of a running one's checkpoint."""
    folders = os.path.realpath(path).split(os.sep)[-2:-4:-1]
    running = next((name for name in folders if name.endswith(PARTIAL_SUFFIX)), folders[0])
    return running.removesuffix(PARTIAL_SUFFIX)


def _check(path: Path, facts: Mapping[str, Any]) -> None:
    for name, (fits, kind) in _FACTS.items():
        if facts.get(name) is not None and not fits(facts[name]):
            raise _wrong(path, name, facts[name], kind)


def _wrong(path: Path, name: str, value: object, kind: str) -> DamagedResultError:
    return DamagedResultError(f"has {name} = {value!r:.60}, not {kind}", path)
