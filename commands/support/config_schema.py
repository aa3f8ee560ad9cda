"""The JSON Schema of a configuration file, made from the flags of `vcpo-bench run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vcpo_bench.commands.support.configuration import config_flags
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import CellSettings

_LIST: dict[str, Any] = {
    "anyOf": [
        {"type": ["string", "number"]},
        {"type": "array", "items": {"type": ["string", "number"]}},
    ]
}
"""What a flag that takes text reads: one value, or a list."""


def config_schema(command: Any) -> dict[str, Any]:
    """The schema (draft 2020-12) of a YAML file for `--config`.

    Args:
        command: The click command of `run`: its long flags are the keys, its help their descriptions.
    """
    choices = _choices()
    properties = {
        flag: _type(option.default, choices.get(str(option.name), ())) | {"description": _words(option)}
        for flag, option in config_flags(command).items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of vcpo-bench run",
        "description": "Keys are the long flags of vcpo-bench run without dashes in front; others may be underscores.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "patternProperties": {
            f"^(?!{flag}$){flag.replace('-', '[-_]')}$": {"$ref": f"#/properties/{flag}"}
            for flag in properties
            if "-" in flag
        },  # not in `properties`: editors complete the spelling that --save-config writes
    }


def _type(default: object, choices: tuple[str, ...]) -> dict[str, Any]:
    if choices:
        return {"enum": list(choices), "default": default}
    if isinstance(default, bool):
        return {"type": "boolean", "default": default}
    if isinstance(default, int | float):
        return {"type": "integer" if isinstance(default, int) else "number", "default": default}
    shown = str(default) if isinstance(default, Path) else default
    return _LIST | ({} if shown is None else {"default": shown})


def _choices() -> dict[str, tuple[str, ...]]:
    """Legal values of the settings that are words."""
    return {setting.parameter: setting.choices for setting in settings_of(CellSettings).values() if setting.choices}


def _words(parameter: Any) -> str:
    return " ".join(str(parameter.help or "").split())
