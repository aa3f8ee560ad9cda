"""Several names of one column as one curve: the mean of the same names at every step, or its level means nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SHOWN = 4
_LARGEST_TABLE = 20_000_000
"""Cells, names times steps, that are averaged at once."""


@dataclass(frozen=True)
class Average:
    """The mean of some names.

    Attributes:
        steps: Ascending, shape [n].
        values: Shape [n].
        names: Whose mean it is, at every step.
        notes: What was averaged and what was left out, one sentence each.
    """

    steps: Array
    values: Array
    names: tuple[str, ...]
    notes: tuple[str, ...]


def average(column: str, parts: Mapping[str, tuple[Array, Array]]) -> Average:
    """The mean of several names.

    An evaluation set that is added or dropped while a run goes on would move a mean over whatever there is, as if the
    run had. So only names that are there at every step are averaged; where none is, only steps that have all of them;
    where there is none of those either, the name that was logged most often stands alone.

    Args:
        column: Ours, for the notes.
        parts: Steps and values by name, [n] each, no step twice in one name.
    """
    if len(parts) == 1:
        ((name, (steps, values)),) = parts.items()
        return Average(steps, values, (name,), ())
    steps = np.unique(np.concatenate([one for one, _ in parts.values()]))
    if len(parts) * steps.size > _LARGEST_TABLE:
        return _most_logged(column, parts)
    table = np.zeros((len(parts), steps.size))
    present: Flags = np.zeros(table.shape, dtype=bool)
    for row, (own, values) in enumerate(parts.values()):
        at = np.searchsorted(steps, own)
        table[row, at], present[row, at] = values, True
    names, rows = _comparable(present)
    kept = [name for name, keep in zip(parts, names, strict=True) if keep]
    left = [name for name in parts if name not in kept]
    return Average(
        steps[rows], table[names][:, rows].mean(axis=0), tuple(kept), _notes(column, kept, left, present, names)
    )


def _most_logged(column: str, parts: Mapping[str, tuple[Array, Array]]) -> Average:
    """The name with the most steps alone, of names too many for a table."""
    name = max(parts, key=lambda one: parts[one][0].size)
    note = f"{column} is {name} alone: {len(parts) - 1} other names fit it as well"
    return Average(*parts[name], (name,), (note,))


def _comparable(present: Flags) -> tuple[Flags, Flags]:
    """Which names, and at which steps, have a mean that is of the same names everywhere."""
    names, rows = np.ones(present.shape[0], dtype=bool), np.ones(present.shape[1], dtype=bool)
    if present.shape[1] > 1 and present[:, :-1].all():  # the newest row may still be being written
        return names, _all(present, 0)
    everywhere = _all(present, 1)
    if everywhere.any():
        return everywhere, rows
    whole = _all(present, 0)
    if whole.any():
        return names, whole
    most = int(present.sum(axis=1).argmax())
    return np.arange(names.size) == most, present[most]


def _all(flags: Flags, axis: int) -> Flags:
    return np.asarray(flags.all(axis=axis))


def _notes(column: str, kept: list[str], left: list[str], present: Flags, names: Flags) -> tuple[str, ...]:
    notes = []
    if len(kept) > 1:
        notes.append(f"{column} is the mean of {len(kept)} names: {_listed(kept)}")
    if left:
        notes.append(f"{column} leaves out {_listed(left)}: not logged at each of its steps")
    missing = int((~_all(present[names], 0)).sum())
    if missing and not left:
        notes.append(f"{column} leaves out {missing} of {present.shape[1]} steps, at which not all of them were logged")
    return tuple(notes)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + " ..." * (len(names) > _SHOWN)
