"""A setting of a cell: what is known of it beside its name, type and default, and which values it may have."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import Field, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from vcpo_bench.errors import UsageError

LONGEST_TEXT = 500
"""Most characters of a text: a stranger's must not fill a page, and none may drive the terminal."""

Apart = Literal["", "noted", "budget"]
"""What a reader of cells that differ in a setting is told; see `Setting.apart`."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. In a table (`records.settings`) it annotates a field, which gives the last four attributes.

    Attributes:
        unit: Unit of its column.
        meaning: What its column holds, as a phrase.
        help: Help of its flag, a sentence; empty: it has no flag of its own.
        metavar: What the help shows for a value; empty: what its type stands for.
        parameter: Name of its flag with underscores, and of its key in YAML files; empty: the name of the setting.
        least: Smallest legal number. A whole number is never negative.
        above: All legal numbers are larger.
        pattern: What a legal text looks like, as a regular expression.
        apart: `noted`: where cells differ in it, a reader is told, because no table separates them. `budget`: also, it
            decides what a run can reach, so the comparison of methods keeps its values apart. Empty: every table
            separates its values, or results do not depend on it.
        with_model: What `vcpo-bench run` takes instead of the default where `--model` names a language model.
        run: What `vcpo-bench run` and `vb.run` take instead of the default, which stays: cell keys leave defaults out.
        name: Name of the field.
        kind: `str`, `int`, `float` or `bool`.
        choices: Legal values of a setting that is a word.
        default: Its default; `dataclasses.MISSING`: it has none.
    """

    unit: str
    meaning: str
    help: str = ""
    metavar: str = ""
    parameter: str = ""
    least: float = -math.inf
    above: float = -math.inf
    pattern: str = ""
    apart: Apart = ""
    with_model: Any = None
    run: Any = None
    name: str = ""
    kind: type = str
    choices: tuple[str, ...] = ()
    default: Any = None

    @property
    def flag(self) -> str:
        """Its flag: `--micro-tokens`."""
        return "--" + self.parameter.replace("_", "-")

    @property
    def given_nothing(self) -> Any:
        """What a flag that is not typed stands for."""
        return self.default if self.run is None else self.run

    def misread(self, value: object) -> str:
        """What a recorded value had to be; empty: it is that. A word that only another version knows is legal here."""
        if self.kind is bool:
            return "" if isinstance(value, bool) else "true or false"
        if self.kind is str:
            fits = isinstance(value, str) and len(value) <= LONGEST_TEXT and value.isprintable()
            return "" if fits else f"a printable text of at most {LONGEST_TEXT} characters when written out"
        return self._misread_number(value)

    def checked(self, value: object) -> Any:
        """A value as a cell holds it: numbers of numpy become those of Python.

        Raises:
            UsageError: It is not legal; the message names the flag.
        """
        if self.kind in (int, float) and not isinstance(value, bool | str):
            with suppress(TypeError, ValueError, OverflowError):
                value = operator.index(value) if self.kind is int else float(value)  # type: ignore[arg-type]
        if wrong := self.misread(value) or self._unknown(value):
            shown = text if len(text := str(value)) <= 60 else f"{text[:57]}..."
            raise UsageError(f"{self.flag} {shown}: must be {wrong}")
        return value

    def _misread_number(self, value: object) -> str:
        whole = self.kind is int
        least, largest = (max(self.least, 0), 2**63 - 1) if whole else (self.least, sys.float_info.max)
        if isinstance(value, int if whole else int | float) and not isinstance(value, bool):
            if value > self.above and least <= value <= largest:
                return ""
            if whole and value > largest:
                return "a whole number below 2^63"
        if self.above > -math.inf:
            return f"a number above {self.above:g}"
        number = "a whole number" if whole else "a finite number"
        return f"{number}, {least:g} or more" if least > -math.inf else number

    def _unknown(self, value: object) -> str:
        """Which words there are, or what a text must look like."""
        if self.choices and value not in self.choices:
            *others, last = map(repr, self.choices)
            return f"{', '.join(others)} or {last}"
        return f"of the form {self.pattern}" if self.pattern and not re.fullmatch(self.pattern, str(value)) else ""


class Settings:
    """Base of a table of settings: a frozen dataclass whose fields are annotated with their type and a `Setting`.

    Raises:
        UsageError: A value is not legal; the message names its flag.
    """

    def __post_init__(self) -> None:
        for name, setting in settings_of(type(self)).items():
            given = getattr(self, name)
            value = setting.checked(given)
            if value is not given:
                object.__setattr__(self, name, value)

    def values(self) -> dict[str, Any]:
        """Every value by name, in the order of the table."""
        return {name: getattr(self, name) for name in settings_of(type(self))}

    def changed(self) -> dict[str, Any]:
        """Those that differ from their defaults."""
        table = settings_of(type(self))
        return {name: value for name, value in self.values().items() if value != table[name].default}


def _settings_of(table: type) -> dict[str, Setting]:
    hints = get_type_hints(table, include_extras=True)
    return {field.name: _setting(field, *get_args(hints[field.name])) for field in fields(table)}


def _setting(field: Field[Any], kind: Any, said: Setting) -> Setting:
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    parameter = said.parameter or field.name
    kind = str if choices else kind
    return replace(said, parameter=parameter, name=field.name, kind=kind, choices=choices, default=field.default)


settings_of: Callable[[type], dict[str, Setting]] = cache(_settings_of)
"""The settings of a table by name, in its order."""
