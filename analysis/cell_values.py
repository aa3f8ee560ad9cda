"""Which values `cell.json` may hold: one cell with a wrong one is set aside, so that it does not silence the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from vcpo_bench import records
from vcpo_bench.errors import DamagedResultError

Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and _is_number(value) and value > 0


def _or_absent(check: Check) -> Check:
    return lambda value: value is None or check(value)


_TEXTS = ("record", "series", "start", "parent", "model", "plugins", "device", "dtype", "sampler", "stop")
_COUNTS = ("prompts", "responses", "eval_every", "fork_step", "lora", "max_response", "micro_tokens")
_CONFIG: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("task", "method", "regime"), (_is_text, "text")),
    **dict.fromkeys(("staleness", "seed", "steps"), (_is_count, "a count")),
    "lr": (_is_rate, "a number above 0"),
    "weight_decay": (_is_number, "a number"),
    **dict.fromkeys(_TEXTS, (_is_text, "text")),
    **dict.fromkeys(_COUNTS, (_is_count, "a count")),
}
_FACTS: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("reason", "error"), (_or_absent(_is_text), "text")),
    "steps_done": (_or_absent(_is_count), "a count"),
    "seconds": (_or_absent(_is_number), "a number"),
    "rules_version": (_or_absent(_is_text), "text"),
    "method_version": (_or_absent(_is_count), "a count"),
    "provenance": (_or_absent(lambda value: isinstance(value, dict)), "an object"),
}


def check_values(cell: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Check the values of a cell's file that any reader relies on; settings that nothing here knows may be anything.

    Raises:
        DamagedResultError: One of them has a wrong type or is out of range; the message reads on after the file's path.
    """
    for values, checks in ((config, _CONFIG), (cell, _FACTS)):
        for name, (check, wanted) in checks.items():
            if name in values and not check(values[name]):
                shown = repr(values[name])[:40]
                raise DamagedResultError(f"has {name} {shown} where {wanted} belongs; its cell is set aside")


def check_key(cell: Mapping[str, Any], folder: str) -> None:
    """Check that a cell's file names the folder it is in: the key becomes part of paths.

    Raises:
        DamagedResultError: It names another one.
    """
    key = folder.removesuffix(records.PARTIAL_SUFFIX)
    if cell.get("key", key) != key:
        raise DamagedResultError(f"names another cell, {str(cell['key'])[:80]!r}; its cell is set aside")
