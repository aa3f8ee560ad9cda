"""The table of the mismatch: the exact path, each component switched alone, and all of them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from vcpo_bench.bench.replay.mismatch.component import MismatchComponent
from vcpo_bench.bench.replay.mismatch.gaps import Gap, Sum, ess_at, gap_of, sum_of_squares
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.replay.mismatch.setup import Drawn, MismatchSetup
from vcpo_bench.progress import track

EXACT, ALL = "exact path", "all of them"


@dataclass(frozen=True, slots=True)
class PathRow:
    """One path.

    Attributes:
        path: Component expression, `exact path` or `all of them`.
        gap: What was measured; None: the component cannot be switched.
        ess: ESS ratio by length, and whether that was measured or extrapolated.
        share: What it adds to the variance of the exact path, over the variance with all on; NaN without that.
        why_not: Why it cannot be switched; empty: it was.
    """

    path: str
    gap: Gap | None
    ess: dict[int, tuple[float, bool]]
    why_not: str = ""
    share: float = math.nan

    def facts(self) -> dict[str, Any]:
        """Everything as plain data."""
        lengths = {f"ess_at_{length}": value for length, (value, _) in self.ess.items()}
        guessed = [length for length, (_, measured) in self.ess.items() if not measured]
        gap = asdict(self.gap) if self.gap else {}
        share = None if math.isnan(self.share) else self.share
        told = {"share": share, "extrapolated_lengths": guessed, "why_not": self.why_not}
        return {"path": self.path, **gap, **lengths, **told}


@dataclass(frozen=True, slots=True)
class Attribution:
    """The table.

    Attributes:
        rows: The exact path, one row per component, and all of them.
        quadrature: How their squares add up; None: fewer than two could be switched.
    """

    rows: tuple[PathRow, ...]
    quadrature: Sum | None

    def facts(self) -> dict[str, Any]:
        """Everything as plain data."""
        share = self.quadrature
        known = {name: None if math.isnan(value) else value for name, value in asdict(share).items()} if share else {}
        total = known | {"verdict": share.verdict} if share else None
        return {"rows": [row.facts() for row in self.rows], "sum_of_squares": total}


def attribute(setup: MismatchSetup, components: Sequence[MismatchComponent], lengths: Sequence[int]) -> Attribution:
    """Measure the gap with each component alone and with all of them.

    Args:
        setup: Sampler and trainer.
        components: Which, each once.
        lengths: Tokens at which the ESS of sequence weights is given.
    """
    able = [component for component in components if not component.why_not(setup)]
    paths: dict[str, Callable[[], SamplingPath]] = {EXACT: lambda: setup.exact}
    paths |= {component.text(): partial(component.switched, setup.exact, setup) for component in able}
    if len(able) > 1:
        paths[ALL] = partial(_all_on, setup, able)
    alone = {name: setup.draw(path()) for name, path in track(paths.items(), "sampling on each path", len(paths))}
    exact, together = alone.pop(EXACT), alone.pop(ALL, None)
    rows = [_row(EXACT, exact, lengths)]
    for component in components:
        name = component.text()
        reason = component.why_not(setup)
        rows.append(PathRow(name, None, {}, reason) if reason else _row(name, alone[name], lengths))
    if together is None:
        return Attribution(tuple(rows), None)
    rows.append(_row(ALL, together, lengths))
    rows = _with_shares(rows)
    return Attribution(tuple(rows), sum_of_squares(exact, list(alone.values()), together, len(setup.prompts)))


def _all_on(setup: MismatchSetup, components: Sequence[MismatchComponent]) -> SamplingPath:
    path = setup.exact
    for component in sorted(components, key=lambda one: one.place):
        path = component.switched(path, setup)
    return path


def _with_shares(rows: list[PathRow]) -> list[PathRow]:
    exact, total = rows[0].gap, rows[-1].gap
    assert exact is not None
    assert total is not None
    if total.sd == 0:
        return rows
    return [
        replace(row, share=(row.gap.sd**2 - exact.sd**2) / total.sd**2)
        if row.gap is not None and row.path not in (EXACT, ALL)
        else row
        for row in rows
    ]


def _row(name: str, drawn: Drawn, lengths: Sequence[int]) -> PathRow:
    return PathRow(name, gap_of(drawn), {length: ess_at(drawn, length) for length in lengths})
