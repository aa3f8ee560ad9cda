"""How captions say how sure a figure is: how many runs its lines rest on, and what their bands or bars are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vcpo_bench.reports.figure import Line


def several(counts: Iterable[int], noun: str = "seed") -> str:
    """`3 seeds`, `1 seed`, or `2 to 3 seeds` where they differ."""
    ordered = sorted(set(counts))
    span = str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
    return f"{span} {noun}{'' if ordered == [1] else 's'}"


def estimate(lines: Sequence[Line], what: str, mark: str, interval: str, noun: str = "seed") -> str:
    """A sentence: `Mean over 3 seeds; band: smallest to largest seed.`, with what a single run does not have.

    Args:
        lines: Of the figure, with the number of their runs.
        what: The estimate: `Mean over`.
        mark: What shows its interval: `band` or `bar`.
        interval: What the mark is.
        noun: What one run is called.
    """
    counts = {count for line in lines for count in line.runs}
    said = f"{what} {several(counts, noun)}"
    if max(counts) == 1:
        return f"{said}, so there is no {mark}."
    return f"{said}; {mark}: {interval}{f', none with 1 {noun}' if min(counts) == 1 else ''}."
