"""A diagnosis as one self-contained HTML page: no network, no script, no dates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis import Diagnosis, Series
from vcpo_bench.analysis.diagnosis.chain import chain_sentence
from vcpo_bench.analysis.diagnosis.index import IndexedRun
from vcpo_bench.analysis.diagnosis.try_next import how_to_resume
from vcpo_bench.analysis.logs.names import LogColumn
from vcpo_bench.analysis.logs.run import PART
from vcpo_bench.files.atomic import write_text
from vcpo_bench.reports.writers.templated import rendered

_WIDTH, _HEIGHT, _MOST_POINTS = 160, 28, 160


def write_index(rows: Sequence[IndexedRun], root: Path, target: Path) -> Path:
    """Write the page; the folder of the file must exist."""
    write_text(target, index_page(rows, root), typed=True)
    return target


def index_page(rows: Sequence[IndexedRun], root: Path) -> str:
    """The page as text."""
    lines = [
        (row.name(root), row, chain_sentence(row.found.chain) if row.found is not None else "", curve(row.curve))
        for row in rows
    ]
    helpers = {"num": lambda value: "" if np.isnan(value) else f"{value:.6g}"}
    return rendered("diagnosis_index.html.j2", helpers=helpers, root=str(root), lines=lines)


def curve(values: NDArray[np.float64]) -> Markup:
    """A small curve, from the lowest value, or 0, to the highest; empty for none."""
    if not values.size:
        return Markup("")
    means = np.array([part.mean() for part in np.array_split(values, min(_MOST_POINTS, values.size))])
    low, high = min(float(means.min()), 0.0), float(means.max())
    x = np.linspace(1, _WIDTH - 1, means.size)
    y = 1 + (_HEIGHT - 2) * (1 - (means - low) / ((high - low) or 1.0))
    points = " ".join(f"{at:.1f},{height:.1f}" for at, height in zip(x, y, strict=True))
    label = f"reward from {means[0]:.3g} to {means[-1]:.3g}, at most {high:.3g}"
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}"><polyline points="{points}"/></svg>'
    )


WIDTH, HEIGHT = 420, 84
_MARGIN_LEFT, _MARGIN_BOTTOM, _MARGIN_TOP = 50, 20, 8
_MOST_POINTS = 720
_LEADING = ("eval_reward", "reward")
_FIRST = 5
"""Curves beside the advice."""
_DECADE = 10.0
"""A signal, no reward and no share, whose values above 0 differ by more than this factor is drawn on a log axis."""


@dataclass(frozen=True)
class SignalPanel:
    """One signal: its title, what it was logged as, and its curve."""

    title: str
    logged_as: str
    tag: str
    svg: Markup


def write_diagnosis(found: Diagnosis, target: Path) -> Path:
    """Write the page; the folder of the file must exist."""
    write_text(target, diagnosis_page(found), typed=True)
    return target


def diagnosis_page(found: Diagnosis) -> str:
    """The page as text."""
    panels = _panels(found)
    judged = len(_judged(found))
    first = judged + min(_FIRST, sum(name in found.run.series for name in _LEADING) + len(found.departures))
    return rendered(
        "diagnosis.html.j2",
        helpers={"num": lambda value: "" if math.isnan(value) else f"{value:.4g}", "curve": curve},
        found=found,
        run=found.run,
        outcome=found.outcome,
        chain=chain_sentence(found.chain),
        resume=how_to_resume(found.run.framework),
        leading=panels[:first],
        panels=panels[first:],
        has_onset=not math.isnan(found.onset),
    )


def _panels(found: Diagnosis) -> list[SignalPanel]:
    """Parts of the reward that were judged, the reward, the signals in the order in which they left, then the rest."""
    left = [one.column for one in found.departures]
    order = [*_LEADING, *left, *sorted(found.run.series)]
    names = [name for name in dict.fromkeys(order) if name in found.run.series]
    span = _span(found)
    marks = {one.column: one.step for one in found.departures}
    panels = []
    for name, part in _judged(found).items():
        panels.append(SignalPanel(name, name, part.source.tag, _curve(part, span, found.onset, float("nan"))))
    for name in names:
        series = found.run.series[name]
        svg = _curve(series, span, found.onset, marks.get(name, float("nan")))
        panels.append(SignalPanel(_title(series.column), ", ".join(series.logged_as[:3]), series.source.tag, svg))
    return panels


def _judged(found: Diagnosis) -> dict[str, Series]:
    """Parts of the reward that the verdict was read from, or that the chain of what happened names."""
    if found.outcome.column != PART:
        return {}
    said = " ".join((found.outcome.reason, *(link.sign for link in found.chain)))
    return {name: part for name, part in found.run.parts.items() if name in said}


def _title(column: LogColumn) -> str:
    """A signal with its unit, where the unit says more than the name."""
    return column.label if column.unit in ("1", column.label, "l2") else f"{column.label} ({column.unit})"


def _span(found: Diagnosis) -> tuple[float, float]:
    first = min(float(one.steps[0]) for one in found.run.series.values())
    last = found.run.last_step
    return first, last if last > first else first + 1


def _curve(series: Series, span: tuple[float, float], onset: float, left: float) -> Markup:
    """A polyline with the range at its side; dashed where the run fell, dotted where this signal left its history."""
    steps, values = series.finite
    if not values.size:
        return Markup('<p class="dim">No finite value.</p>')
    every = -(-values.size // _MOST_POINTS)
    steps, values = steps[::every], values[::every]
    low, high = float(values.min()), float(values.max())
    wide = low > 0 and high / low > _DECADE and series.column.unit != "reward" and "share" not in series.column.name
    log = low > 0 and (series.column.log or wide)
    shown = np.log(values) if log else values
    bottom, top = float(shown.min()), float(shown.max())
    rise = (top - bottom) or 1.0
    inner = HEIGHT - _MARGIN_BOTTOM - _MARGIN_TOP
    y = _MARGIN_TOP + inner * (1 - (shown - bottom) / rise)
    points = " ".join(f"{_x(step, span):.1f},{height:.1f}" for step, height in zip(steps, y, strict=True))
    parts = [f'<polyline class="line" points="{points}"/>']
    for step, kind in ((onset, "onset"), (left, "left")):
        if not math.isnan(step):
            x = _x(step, span)
            parts.append(f'<path class="{kind}" d="M{x:.1f} {_MARGIN_TOP} V{HEIGHT - _MARGIN_BOTTOM}"/>')
    floor = HEIGHT - _MARGIN_BOTTOM
    parts += [
        f'<path class="axis" d="M{_MARGIN_LEFT} {_MARGIN_TOP} V{floor} H{WIDTH}"/>',
        f'<text x="{_MARGIN_LEFT - 5}" y="{_MARGIN_TOP + 8}" text-anchor="end">{_short(high)}</text>',
        f'<text x="{_MARGIN_LEFT - 5}" y="{floor}" text-anchor="end">{_short(low)}</text>',
        f'<text x="{_MARGIN_LEFT}" y="{HEIGHT - 5}">{span[0]:g}</text>',
        f'<text x="{WIDTH}" y="{HEIGHT - 5}" text-anchor="end">step {span[1]:g}</text>',
    ]
    if log:
        parts.append(f'<text x="{_MARGIN_LEFT - 5}" y="{(_MARGIN_TOP + floor) // 2}" text-anchor="end">log</text>')
    label = f"from {low:.3g} to {high:.3g}"
    return Markup(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _short(value: float) -> str:
    """A number that fits beside its axis."""
    return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e+") if 0 < abs(value) < 1e-3 else f"{value:.3g}"


def _x(step: float, span: tuple[float, float]) -> float:
    return _MARGIN_LEFT + (WIDTH - _MARGIN_LEFT) * (step - span[0]) / (span[1] - span[0])
