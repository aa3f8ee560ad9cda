"""`--launcher` and `--launcher-config`: where cells run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.bench.running.schedulers.catalog import Launcher


def read_launcher(expression: str, config: Path | None) -> Launcher:
    """The launcher of this call. A parameter typed in the expression wins over the same one in the file.

    Raises:
        UsageError: There is no such launcher, or the file cannot be read or has an illegal key or value.
    """
    from vcpo_bench.bench.running.schedulers.catalog import LAUNCHERS
    from vcpo_bench.files.plain_yaml import read_settings_file
    from vcpo_bench.naming.component import parameters

    launcher = LAUNCHERS.parse(expression)
    if config is None:
        return launcher
    kind = type(launcher)
    known = parameters(kind)
    values = {}
    for key, value in read_settings_file(config, f"--launcher-config {config}", "partition: gpu").items():
        if value is None:
            raise UsageError(f"--launcher-config {config}: {key} has no value; give one, or leave the line out")
        if key not in known:
            takes = ", ".join(known) or "no parameters"
            raise UsageError(f"--launcher-config {config}: unknown key {key!r}; {kind.name} takes: {takes}")
        try:
            values[key] = known[key][1].read(str(value))
        except ValueError:
            legal = known[key][1].legal
            raise UsageError(f"--launcher-config {config}: {key}: {value!r} is not {legal}") from None
    return kind(**(values | {name: getattr(launcher, name) for name in _typed(expression, list(known))}))


def _typed(expression: str, names: list[str]) -> Iterator[str]:
    """Parameters that an expression gives, also where it gives their default."""
    from vcpo_bench.naming.grammar import read_items

    for item in read_items(expression):
        for place, argument in enumerate(item.arguments):
            yield argument.key.text if argument.key else names[place]


def scheduled_count(jobs: int) -> int:
    """Most cells that a scheduler may run at once, by `--jobs`.

    Raises:
        UsageError: It is negative.
    """
    if jobs < 0:
        raise UsageError(f"--jobs {jobs}: give the most cells to run at once, or 0 for no limit")
    return jobs


def check_stacking(stack: str, place: Launcher) -> None:
    """Raise `UsageError` for a `--stack` that is no legal number, or where each cell gets a job of its own."""
    from vcpo_bench.bench.running.pool.stacks import check_stack

    check_stack(stack)
    if stack.isdecimal() and not place.here:
        raise UsageError(f"--stack {stack}: --launcher {place.name} gives each cell a job of its own; drop --stack")
