"""Foreign names to series under our columns: which name fills which column, sign, transform and step axis."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.logs.averages import average
from vcpo_bench.analysis.logs.names import CLOCK, Framework, Name, columns, step_names
from vcpo_bench.analysis.logs.rows import ROW_NUMBER, LogRows
from vcpo_bench.analysis.logs.run import PART, Series

Array = NDArray[np.float64]
Mapped = tuple[dict[str, Series], dict[str, Series], int, tuple[str, ...], str, list[str]]

_SLOWER = 1.5
"""Two step axes whose ends differ by more than this factor count different things."""


def map_names(rows: LogRows, framework: Framework | None, wanted: Mapping[str, str]) -> Mapped:
    """Fill our columns from the names of a log.

    Returns:
        The series by column; the parts of the reward by name; how many values were overwritten; names that fill
        nothing; the name of the step; notes.
    """
    logged = rows.kept()
    chosen: dict[str, tuple[Name, list[str]]] = {
        column: (Name(name, column, "exact", source="--map"), [name])
        for column, name in wanted.items()
        if name in logged
    }
    if framework is not None:
        bare = {name: framework.bare(name) for name in logged}
        for entry in framework.names_beside(rows.names):
            matching = [name for name in logged if entry.matches(bare[name])]
            if matching and entry.column not in chosen:
                chosen[entry.column] = (entry, matching)
    axis, factors, notes = _axes(rows, [name for _, names in chosen.values() for name in names])
    joined = "reward" in chosen and any(rows.axes[name] == axis for name in chosen["reward"][1])
    series: dict[str, Series] = {}
    parts_of_reward: dict[str, Series] = {}
    overwritten = 0
    used: set[str] = set()
    for column, (entry, names) in chosen.items():
        parts, lost = _parts(rows, names, factors, joined)
        overwritten += lost if column != CLOCK else 0  # each process of a run may log it
        if column == PART:
            parts_of_reward = _one_by_one(entry, parts)
            used.update(names)
            continue
        mean = average(column, parts)
        if mean.steps.size:
            series[column] = Series(columns()[column], entry, mean.names, mean.steps, _transformed(mean.values, entry))
        notes += mean.notes
        used.update(mean.names)
    return (
        series,
        parts_of_reward,
        overwritten,
        tuple(name for name in rows.names if name not in used and name not in step_names()),
        axis,
        notes,
    )


def _one_by_one(entry: Name, parts: Mapping[str, tuple[Array, Array]]) -> dict[str, Series]:
    """Each name of a column as a curve of its own."""
    return {
        name: Series(columns()[PART], entry, (name,), steps, values)
        for name, (steps, values) in parts.items()
        if steps.size
    }


def mapped_dumps(weights: LogRows) -> dict[str, Series]:
    """Series of what was computed from token dumps: their names are ours."""
    result = {}
    for name in weights.kept():
        steps, values, _ = weights.series(name)
        source = Name(name, name, "exact", source="computed from the token dumps")
        result[name] = Series(columns()[name], source, (name,), steps, values)
    return result


def _parts(
    rows: LogRows, names: list[str], factors: Mapping[str, int], joined: bool
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """Steps on the run's axis and values by name, and how many values were overwritten.

    Rows between two steps of the run's are `joined` into their mean, as optimizer updates on one rollout, or stand
    between them, as updates between two evaluations.
    """
    parts, overwritten = {}, 0
    for name in names:
        steps, values, lost = rows.series(name)
        times = factors.get(rows.axes[name], 1)
        if times > 1:
            steps, values = _joined(steps // times, values) if joined else (steps / times, values)
        parts[name] = steps, values
        overwritten += lost
    return parts, overwritten


def _joined(steps: Array, values: Array) -> tuple[Array, Array]:
    """The mean of the values [n] at equal steps, ascending."""
    whole, first = np.unique(steps, return_index=True)
    with np.errstate(invalid="ignore"):  # infinities of both signs
        return whole, np.add.reduceat(values, first) / np.diff(first, append=values.size)


def _transformed(values: Array, entry: Name) -> Array:
    result = values * entry.sign
    if entry.transform == "minus_one":
        result = result - 1.0
    elif entry.transform == "one_minus":
        result = 1.0 - result
    elif entry.transform == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.log(result)
    return result


def _axes(rows: LogRows, names: list[str]) -> tuple[str, dict[str, int], list[str]]:
    """The axis of the run, and what the steps of the others are divided by to be on it.

    The axis of the slowest counter is the run's: slime counts rollouts, and several optimizer updates in each.
    """
    ends: dict[str, float] = {}
    for name in names:
        axis = rows.axes[name]
        ends[axis] = max(ends.get(axis, 0.0), rows.farthest(name))
    if not ends:
        return "", {}, []
    slowest = min(ends, key=lambda axis: (ends[axis], axis))
    notes = []
    if ROW_NUMBER in ends:
        notes.append("rows carry no step that is known; their number is used instead (--map step=KEY names one)")
    factors = {}
    for axis, end in ends.items():
        ratio = (end + 1) / (ends[slowest] + 1)
        if axis != slowest and ratio > _SLOWER:
            factors[axis] = round(ratio)
            notes.append(f"{axis} counts {round(ratio)} times as fast as {slowest}, in which steps are counted here")
    return slowest, factors, notes
