"""From what the user types to a task in words."""

import re
from difflib import get_close_matches
from typing import Any

from vcpo_bench.bench.cells.flag_values import split_top_level
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.bench.tasks.text.base import Setting, TextTask
from vcpo_bench.bench.tasks.text.countdown import Countdown
from vcpo_bench.bench.tasks.text.gsm8k import Gsm8k
from vcpo_bench.bench.tasks.text.gym import ReasoningGym
from vcpo_bench.bench.tasks.text.math import CompetitionMath
from vcpo_bench.errors import UsageError

_TYPES: tuple[type[TextTask], ...] = (Arithmetic, Countdown, Gsm8k, CompetitionMath, ReasoningGym)
_EXPRESSION = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*")


def text_task_types() -> dict[str, type[TextTask]]:
    """Every task in words by name, with its `summary` and the defaults of its `parameters`."""
    return {task.name: task for task in _TYPES}


def text_task_names() -> list[str]:
    """Names of the tasks in words, for help and completion."""
    return [task.name for task in _TYPES]


def get_text_task(expression: str) -> TextTask:
    """The task that an expression names: `countdown`, `countdown(numbers=3)`, `gsm8k(data=train.jsonl)`.

    Raises:
        UsageError: The name, a parameter or a value is unknown or out of range; the message says what is legal.
    """
    match = _EXPRESSION.fullmatch(expression)
    if match is None or match[1] not in text_task_types():
        close = get_close_matches(expression.partition("(")[0].strip(), text_task_names(), n=2)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise UsageError(f"unknown task {expression!r}: {hint}tasks in words: {', '.join(text_task_names())}")
    kind = text_task_types()[match[1]]
    values: dict[str, Any] = {}
    for key, value in (_argument(expression, kind, part) for part in split_top_level(match[2] or "")):
        if key in values:
            raise UsageError(f"task {expression!r}: parameter {key!r} is given twice; keep one")
        values[key] = value
    if values.pop("scorer", kind.scorer_version) != kind.scorer_version:
        raise UsageError(f"task {expression!r}: this version of vcpo-bench has scorer {kind.scorer_version} only")
    return kind(**values)


def _argument(expression: str, kind: type[TextTask], part: str) -> tuple[str, Setting]:
    """A parameter and its value; a bare value stands for the first parameter."""
    key, _, value = (text.strip() for text in part.rpartition("="))
    key = key or next(iter(kind.parameters), "")
    if key != "scorer" and key not in kind.parameters:
        legal = ", ".join(f"{name} (default {default})" for name, default in kind.parameters.items()) or "none"
        raise UsageError(f"task {expression!r}: {kind.name} has no parameter {key or part!r}; its parameters: {legal}")
    if isinstance(kind.parameters.get(key, 0), str):
        return key, value
    if not re.fullmatch(r"[+-]?\d{1,9}", value):
        raise UsageError(f"task {expression!r}: {key} must be a whole number, not {value!r}")
    return key, int(value)
