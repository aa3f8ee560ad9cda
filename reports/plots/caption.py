"""How captions say how sure a figure is: how many runs its lines rest on, and what their bands or bars are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vcpo_bench.reports.figure import Line


def several(counts: Iterable[int], noun: str = "seed") -> str:
    """`3 seeds`, `1 seed`, or `2 to 3 seeds` where they differ."""
    ordered = sorted(set(counts))
    span = str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
    return f"{span} {noun}{'' if ordered == [1] else 's'}"


def estimate(lines: Sequence[Line], what: str, mark: str, interval: str, noun: str = "seed", least: int = 2) -> str:
    """A sentence: `Mean over 3 seeds; band: smallest to largest seed.`, with what too few runs do not have.

    Args:
        lines: Of the figure, with the number of their runs.
        what: The estimate: `Mean over`.
        mark: What shows its interval: `band` or `bar`.
        interval: What the mark is.
        noun: What one run is called.
        least: Fewest runs for which it is drawn.
    """
    counts = {count for line in lines for count in line.runs}
    said = f"{what} {several(counts, noun)}"
    if max(counts) < least:
        return f"{said}, too few for a {mark}."
    fewer = f"1 {noun}" if least == 2 else f"fewer than {least}"
    return f"{said}; {mark}: {interval}{f', none with {fewer}' if min(counts) < least else ''}."
