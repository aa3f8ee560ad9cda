"""Every signal of every run at every update, from columns that are read together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.monitoring.signal import Signal
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import in_order, spans
from vcpo_bench.progress import track

Array = NDArray[np.float64]

_AT_ONCE = 64
"""Runs whose signal is computed together: their numbers fit into the processor's cache."""


class _Rows:
    """The updates of some runs of one length: `analysis.monitoring.signal.Updates` without a data frame.

    Args:
        columns: Of the updates of all runs.
        rows: Which of them are theirs, run after run.
        runs: How many runs; None: one, whose columns are [S], not [N, S].
    """

    def __init__(self, columns: Mapping[str, Array], rows: slice, runs: int | None = None) -> None:
        self._columns = columns
        self._rows = rows
        self._shape = (-1,) if runs is None else (runs, -1)

    def __len__(self) -> int:
        return int(self["step"].shape[-1])

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Array:
        return self._columns[name][self._rows].reshape(self._shape)


class _Block(NamedTuple):
    """Runs of one length that follow one another in the table of updates.

    `places` are their rows in the result [N], `rows` theirs in the table.
    """

    places: NDArray[np.int64]
    rows: slice


def signal_values(
    results: Results, keys: Sequence[str], length: int, signals: Mapping[str, Signal]
) -> dict[str, Array]:
    """Values [N, S] of each signal at each update of N runs; NaN where it says nothing or the run has ended.

    Args:
        results: The runs.
        keys: Those that are wanted, in the order of the N rows.
        length: S, above every step of these runs.
        signals: What to compute.
    """
    return dict(each_signal(results, keys, length, signals))


def each_signal(
    results: Results, keys: Sequence[str], length: int, signals: Mapping[str, Signal]
) -> Iterator[tuple[str, Array]]:
    """`signal_values` of one signal after another: all of them at once take as much memory as their columns."""
    columns = sorted({name for one in signals.values() for name in one.columns})
    table = in_order(results.step_columns(*columns))
    known = {name: table[name].to_numpy(np.float64) for name in ("step", *columns)}
    row = {key: number for number, key in enumerate(keys)}
    blocks = list(_blocks((row.get(key, -1), rows) for key, rows in spans(table)))
    for name, signal in track(signals.items(), "judging signals", len(signals)):
        values: Array | None = None
        for place, step, found in _found(signal, known, blocks):
            if values is None and np.isfinite(found).any():
                values = np.full((len(keys), length), np.nan)
            if values is not None:
                values[place, step.astype(np.int64)] = found
        # What says nothing takes no memory.
        yield name, np.broadcast_to(np.nan, (len(keys), length)) if values is None else values


def _blocks(runs: Iterable[tuple[int, slice]]) -> Iterator[_Block]:
    """The wanted ones of these runs, at most `_AT_ONCE` at a time.

    Args:
        runs: Their row in the result, -1 where they are not wanted, and their rows in the table.
    """
    by_length = groupby(runs, key=lambda run: (run[0] >= 0, run[1].stop - run[1].start))
    for (wanted, _), alike in by_length:
        while wanted and (some := list(islice(alike, _AT_ONCE))):
            yield _Block(np.array([place for place, _ in some]), slice(some[0][1].start, some[-1][1].stop))


def _found(
    signal: Signal, columns: Mapping[str, Array], blocks: Iterable[_Block]
) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
    """Rows of the result, steps and values of some runs after others; each broadcasts to [N, S]."""
    for block in blocks:
        together = _Rows(columns, block.rows, len(block.places))
        if signal.stacks:
            yield block.places[:, None], together["step"], signal.of(together)
            continue
        size = len(together)
        for number, place in enumerate(block.places):
            begin = block.rows.start + number * size
            one = _Rows(columns, slice(begin, begin + size))
            yield place[None], one["step"], signal.of(one)
