"""Settings from a YAML file, whose keys are the long flags of `vcpo-bench run`; underscores are read as dashes."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_text
from vcpo_bench.files.plain_yaml import read_settings_file
from vcpo_bench.naming.grammar import closest
from vcpo_bench.records.settings import SETTINGS

Scalar = str | int | float | bool
_OFF = ["stack", *(one.parameter for one in SETTINGS.values() if "off" in one.choices)]
"""Flags that may be `off`, which YAML reads as false."""


def read_configuration(name: str, presets: Path, flags: Mapping[str, type]) -> dict[str, Any]:
    """Values for flags, from a preset or a file.

    Args:
        name: Name of a preset, such as `quick`, or path of a YAML file.
        presets: Folder of the presets.
        flags: Legal keys, and the type of each.

    Raises:
        UsageError: No such preset or file, invalid YAML, an unknown key, or a value of the wrong kind.
    """
    path = _find(name, presets)
    values = read_settings_file(path, f"--config {name}", "methods: vcpo,clip")
    by_flag: dict[str, Any] = {}
    for key, value in values.items():
        flag = _flag(key, flags, name)
        if flag in by_flag:
            raise UsageError(
                f"--config {name}: {flag} is there twice, with dashes and underscores; drop one of the two"
            )
        by_flag[flag] = _value(flag, value, flags, name)
    return by_flag


def write_configuration(path: Path, values: Mapping[str, Any]) -> None:
    """Write the settings of a run so that `--config` reads them back.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        write_text(path, yaml.safe_dump(dict(values), sort_keys=False), typed=True)
    except OSError as error:
        raise UsageError(f"--save-config {path}: cannot be written ({error.strerror}); name another file") from error


def preset_names(presets: Path) -> list[str]:
    """The presets of a folder, in alphabetical order."""
    return sorted(path.stem for path in presets.glob("*.yaml"))


def _find(name: str, presets: Path) -> Path:
    if (presets / f"{name}.yaml").is_file():
        return presets / f"{name}.yaml"
    path = Path(os.path.expanduser(name))
    if path.is_file():
        return path
    known = preset_names(presets)
    raise UsageError(f"--config {name}: no such file or preset{closest(name, known)} (presets: {', '.join(known)})")


def _flag(key: object, flags: Mapping[str, type], name: str) -> str:
    """The flag that a key names, with dashes or, as for `vb.run`, underscores."""
    if isinstance(key, str) and (flag := key.replace("_", "-")) in flags:
        return flag
    hint = closest(str(key), flags) or f"; legal keys: {', '.join(flags)}"
    raise UsageError(f"--config {name}: unknown key {key!r}{hint}")


def _value(key: str, value: Any, flags: Mapping[str, type], name: str) -> Scalar:
    """The value as the flag takes it; a YAML list becomes a comma-separated one."""
    wanted = flags[key]
    truth = isinstance(value, bool)
    if wanted is bool and truth:
        return bool(value)
    if wanted is str and value is False and key in _OFF:
        return "off"
    if wanted is int and isinstance(value, int) and not truth:
        return value
    if wanted is str and isinstance(value, list) and all(isinstance(v, (str, int, float)) for v in value):
        return ",".join(map(str, value)) + ("," if len(value) == 1 else "")
    if wanted is str and isinstance(value, (str, int, float)) and not truth:
        return os.path.expanduser(str(value))
    raise UsageError(f"--config {name}: {key}: --{key} does not take {reprlib.repr(value)}")
