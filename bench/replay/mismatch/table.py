"""The table of the mismatch as text and as CSV, and the lists that ask for it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

from vcpo_bench.bench.replay.mismatch.attribute import Attribution, PathRow
from vcpo_bench.bench.replay.mismatch.component import COMPONENTS, MismatchComponent
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_text


def read_components(text: str) -> list[MismatchComponent]:
    """The components of a comma-separated list; `all`: every one there is, as it is without parameters.

    Raises:
        UsageError: One is unknown, not legal, or named twice.
    """
    found = COMPONENTS.parse_list(",".join(COMPONENTS.names()) if text == "all" else text)
    names = [component.name for component in found]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UsageError(f"--components {text}: {twice[0]} is named twice; measure one of them at a time")
    return found


def read_lengths(text: str) -> list[int]:
    """The lengths of a comma-separated list.

    Raises:
        UsageError: One is no whole number of at least 1.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := [part for part in parts if not part.isdecimal() or int(part) < 1]:
        raise UsageError(f"--length {wrong[0]}: must be a whole number of tokens, at least 1")
    return [int(part) for part in parts]


def write_csv(path: Path, found: Attribution) -> None:
    """Write the rows as CSV."""
    rows = [row.facts() for row in found.rows]
    for row in rows:
        row["extrapolated_lengths"] = " ".join(map(str, row["extrapolated_lengths"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue(), typed=True)


def lines(found: Attribution) -> Iterator[str]:
    """The table as aligned text, and a line about the sum of squares."""
    lengths = list(found.rows[0].ess)
    head = ["path", "mean", "sd", "KL k3", "outside 0.9-1.1", "share", *(f"ESS at {length}" for length in lengths)]
    cells = [head, *(_cells(row, len(head)) for row in found.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    for row, kept in zip(cells, (None, *found.rows), strict=True):
        if kept is not None and kept.why_not:
            yield f"{kept.path.ljust(widths[0])}  cannot be switched: {kept.why_not}"
        else:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield "a path is what differs between sampler and trainer (vcpo-bench ls components): each alone, then all"
    yield "mean, sd, KL k3: of log(trainer / sampler) per token; outside: tokens with a ratio beyond 0.9 to 1.1"
    yield "share: of the squared spread of all; ESS at N: of the weights of N tokens, 1 where nothing differs"
    if any(not measured for row in found.rows for _, measured in row.ess.values()):
        yield "~ extrapolated past the longest response, as if tokens were independent: exp(-length sd^2)"
    if found.quadrature:
        share = found.quadrature
        yield (
            f"squares of the components: {share.value:.3g} of that of all [{share.low:.3g}, {share.high:.3g}], "
            f"{share.verdict}"
        )


def _cells(row: PathRow, count: int) -> list[str]:
    if row.gap is None:
        return [row.path, *[""] * (count - 1)]
    gap = row.gap
    share = "" if math.isnan(row.share) else f"{round(row.share, 3) + 0.0:.1%}"  # + 0.0: no minus before a zero
    ess = [f"{'' if measured else '~'}{value:.3f}" for value, measured in row.ess.values()]
    return [row.path, f"{gap.mean:.2e}", f"{gap.sd:.2e}", f"{gap.kl_k3:.2e}", f"{gap.outside:.1%}", share, *ess]
