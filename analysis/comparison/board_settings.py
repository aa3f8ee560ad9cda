"""What tells the boards of a leaderboard apart: the settings of runs that differ from the defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.comparability import DEFAULTS

_SIZE = ("steps", "prompts", "responses")
"""Settings that every board names, the default ones too."""


def unusual_settings(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each cell, the settings that differ from the defaults, in their order there.

    Args:
        cells: One row per cell. A setting without a column or a value has its default.
    """
    found: list[dict[str, Any]] = [{} for _ in range(len(cells))]
    for name, usual in DEFAULTS.items():
        kind: type[Any] = type(usual)
        for own, value in zip(found, cells.get(name, [usual] * len(cells)), strict=True):
            if not pd.isna(value) and kind(value) != usual:
                own[name] = kind(value)
    return found


def settings_text(settings: Mapping[str, Any]) -> str:
    """In words: `80 updates of 8 prompts x 8 responses, eval every 20`.

    Args:
        settings: Those that differ from the defaults.
    """
    steps, prompts, responses = ((DEFAULTS | dict(settings))[name] for name in _SIZE)
    named = [name for name in DEFAULTS if name in settings and name not in _SIZE]
    rest = [f"{name.replace('_', ' ')} {_word(settings[name])}" for name in named]
    return ", ".join([f"{steps} updates of {prompts} prompts x {responses} responses", *rest])


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def settings_problem(settings: Mapping[str, Any]) -> str:
    """What is wrong with the settings of a row as its file has them; empty: nothing."""
    for name, value in settings.items():
        if name not in DEFAULTS:
            return f"the setting {name!r} is unknown"
        if type(value) is not type(DEFAULTS[name]) or (isinstance(value, float) and not math.isfinite(value)):
            return f"the setting {name!r} is {value!r}"
        if value == DEFAULTS[name]:
            return f"the setting {name!r} has its default, {value!r}, which an entry leaves out"
    return ""
