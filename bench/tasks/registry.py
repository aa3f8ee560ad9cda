"""From what the user types to a task."""

import re
from difflib import get_close_matches

from vcpo_bench.bench.tasks.base import EmbeddedTask
from vcpo_bench.bench.tasks.chain import Chain
from vcpo_bench.bench.tasks.prefix_chain import PrefixChain
from vcpo_bench.bench.tasks.text.registry import text_task_names
from vcpo_bench.bench.tasks.walk import Walk, WalkEos
from vcpo_bench.errors import UsageError

_TYPES: tuple[type[EmbeddedTask], ...] = (Chain, Walk, WalkEos, PrefixChain)
_EXPRESSION = re.compile(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*")


def task_types() -> dict[str, type[EmbeddedTask]]:
    """Every task by name, with its `summary` and the defaults of its `parameters`."""
    return {task.name: task for task in _TYPES}


def task_names() -> list[str]:
    """Names of the tasks, for help and completion."""
    return [task.name for task in _TYPES]


def get_task(expression: str) -> EmbeddedTask:
    """The task that an expression names: `chain`, `chain(8)` and `chain(n=8)`.

    Raises:
        UsageError: The name, a parameter or a value is unknown or out of range; the message says what is legal.
    """
    match = _EXPRESSION.fullmatch(expression)
    if match is None:
        raise UsageError(
            f"task {expression!r} is not of the form NAME or NAME(parameter=value); tasks: {', '.join(task_names())}"
        )
    name, arguments = match.groups()
    if name in text_task_names():
        raise UsageError(f"task {expression!r} is in words and needs a language model: add --model NAME_OR_PATH")
    if name not in task_types():
        close = get_close_matches(name, task_names(), n=2)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise UsageError(f"unknown task {name!r}: {hint}tasks: {', '.join(task_names())}")
    task = task_types()[name]
    return task(**_arguments(expression, task, arguments or ""))


def _arguments(expression: str, task: type[EmbeddedTask], text: str) -> dict[str, int]:
    """Parameters of a task from the text between its brackets; a bare value stands for the first parameter."""
    values: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = part.rpartition("=")
        key = key.strip() or next(iter(task.parameters), "")
        if key not in task.parameters:
            legal = ", ".join(f"{name} (default {default})" for name, default in task.parameters.items()) or "none"
            raise UsageError(
                f"task {expression!r}: {task.name} has no parameter {key or part!r}; its parameters: {legal}"
            )
        if key in values:
            raise UsageError(f"task {expression!r}: parameter {key!r} is given twice; keep one")
        if not re.fullmatch(r"[+-]?\d+", value.strip()):
            raise UsageError(f"task {expression!r}: {key} must be a whole number, not {value.strip()!r}")
        values[key] = int(value)
    return values
