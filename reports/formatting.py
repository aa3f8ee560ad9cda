"""How numbers are written: the same in tables, sentences and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

import numpy as np

from vcpo_bench.analysis.wording import learning_rate

MISSING = "\u2013"
"""What stands where there is no number."""

MINUS = "\u2212"


def by_size(value: object) -> tuple[float, str]:
    """Sort key: numbers by size (numpy's too), then everything else by its text."""
    return (float(value), "") if isinstance(value, Real) else (math.inf, str(value))


def rate(value: object) -> str:
    """A learning rate as people type it: `3e-4`."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return MISSING
    return learning_rate(value)


def number(value: float | None, digits: int = 3) -> str:
    """A quantity with `digits` decimals, or scientific where that would hide it; a dash when there is none."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    small = value != 0 and abs(value) < 10**-digits
    text = f"{value:.2e}" if small or abs(value) >= 1e6 else f"{value:.{digits}f}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def whole(value: object) -> str:
    """A count that a table with gaps may hold as a float or not at all."""
    return f"{value:.0f}" if isinstance(value, Real) and math.isfinite(value) else MISSING


def fixed(value: float | None, digits: int = 2) -> str:
    """A quantity with exactly `digits` decimals, as differences and rewards are read; a dash when there is none."""
    if value is None or not math.isfinite(value):
        return number(value)
    text = f"{value:.{digits}f}"
    return text.replace("-", MINUS, 1) if float(text) else text.lstrip("-")


def interval(low: float, high: float, digits: int = 2) -> str:
    """`[0.51, 0.66]`, or nothing where there is no interval."""
    return "" if math.isnan(low) or math.isnan(high) else f"[{fixed(low, digits)}, {fixed(high, digits)}]"


def in_words(value: object) -> str:
    """A recorded setting or fact: `numpy 2.4.6, torch 2.12.0` for a mapping, `yes`, `no`, or `not recorded`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(value[name])}" for name in sorted(value, key=str))
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"  # every digit that somebody typed, and no rounding noise
    return "not recorded" if value is None else str(value)


def duration(seconds: float) -> str:
    """A length of time a person reads at a glance: `8 s`, `3 min`, `2 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
