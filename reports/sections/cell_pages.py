"""A page per cell: its settings, how it ended, and its curves as small drawings of a few kilobytes."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.formatting import duration, number, rate, whole
from vcpo_bench.reports.study import Series, Study, bin_edges, binned

WIDTH, HEIGHT, BINS = 150, 44, 40
MANY = 200
"""With more cells than this, those that differ only in their seed stand folded under one line."""


class _Curve(NamedTuple):
    """What a small curve shows; without a range it is scaled to its own values."""

    label: str
    table: str
    column: str
    log: bool
    range: tuple[float, float] | None


_CURVES = (
    _Curve("reward", "evals", "sampled_reward", False, (0.0, 1.0)),
    _Curve("ESS ratio", "steps", "ess_ratio", True, (0.005, 1.0)),
    _Curve("gradient norm", "steps", "grad_norm", True, None),
    _Curve("KL", "steps", "kl_mu_theta_k3", True, None),
)


@dataclass(frozen=True)
class Spark:
    """A small curve: what it shows, its first-to-last range in words, and the SVG path data."""

    label: str
    range: str
    path: str
    mark: float | None


@dataclass(frozen=True)
class CellPage:
    """What is shown of one cell; `place` is what the page filters by."""

    anchor: str
    group: str
    title: str
    status: str
    bad: bool
    facts: list[tuple[str, str]]
    sparks: list[Spark]
    place: tuple[tuple[str, str], ...] = ()


class CellGroup(NamedTuple):
    """Cells that stand together, and the line they are folded under; an empty title: they are not folded."""

    title: str
    failed: int
    cells: list[CellPage]


def grouped(cells: list[CellPage]) -> list[CellGroup]:
    """The cells as a page shows them: up to `MANY` as they are, more folded by everything but the seed."""
    if len(cells) <= MANY:
        return [CellGroup("", 0, cells)] if cells else []
    together = [(title, list(members)) for title, members in groupby(cells, key=lambda cell: cell.group)]
    return [CellGroup(title, sum(cell.bad for cell in members), members) for title, members in together]


def cell_pages(study: Study) -> list[CellPage]:
    """All cells, in the order of task, learning rate, lag, method and seed."""
    ordered = study.cells.sort_values(["task", "lr", "staleness", "method", "seed"], kind="stable")
    return [_page(study, cell) for _, cell in ordered.iterrows()]


def _page(study: Study, cell: pd.Series) -> CellPage:
    group = f"{cell['task']}, lag {cell['staleness']}, lr {rate(cell['lr'])}, {cell['method']}"
    onset = cell["onset"]
    status = f"{cell['event']}, onset at update {onset:.0f}" if pd.notna(onset) else str(cell["event"])
    facts = [
        ("key", str(cell["key"])),
        ("ended as", f"{cell['status']} after {whole(cell['steps_done'])} updates"),
        ("reward", ", ".join(f"{when} {number(cell[f'{when}_reward'])}" for when in ("start", "best", "final"))),
    ]
    if pd.notna(cell["seconds"]):
        facts.append(("time", duration(float(cell["seconds"]))))
    reason = why(cell)
    if reason:
        facts.append(("reason", reason))
    sparks = [one for curve in _CURVES if (one := _spark(study, str(cell["key"]), onset, curve)) is not None]
    bad = bool(cell["failed"]) or cell["status"] == "error"
    place = (
        ("task", task_of(cell)),
        ("lag", str(cell["staleness"])),
        ("lr", rate(cell["lr"])),
        ("method", str(cell["method"])),
    )
    title = f"{group}, seed {cell['seed']}"
    return CellPage(anchor(str(cell["key"])), group, title, status, bad, facts, sparks, place)


def task_of(cell: pd.Series) -> str:
    """The task as tables of a report name it: with the regime where it is not the usual one."""
    return str(cell["task"]) if cell["regime"] == SYNCHRONOUS else f"{cell['task']} ({cell['regime']})"


def anchor(key: str) -> str:
    """The anchor of a cell's page, from its key."""
    return f"cell-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def why(cell: pd.Series) -> str:
    """Why a cell ended early, or an empty string; missing values of a table are NaN, not None."""
    return next((text for text in (cell["reason"], cell["error"]) if isinstance(text, str) and text), "")


def _spark(study: Study, key: str, onset: float, curve: _Curve) -> Spark | None:
    rows: pd.DataFrame | None = getattr(study, curve.table).get(key)
    if rows is None:
        return None
    steps, values = rows["step"].to_numpy(np.float64), rows[curve.column].to_numpy(np.float64)
    if not np.isfinite(values).any():
        return None
    last = float(steps.max())
    if steps.size > BINS:
        edges = bin_edges(int(last), BINS)
        steps, values = np.minimum((edges[:-1] + edges[1:]) / 2, last), binned(steps, values, edges)
    finite = values[np.isfinite(values)]
    path = _path(steps / max(last, 1.0), values, curve)
    mark = None if pd.isna(onset) else round(WIDTH * float(onset) / max(last, 1.0), 1)
    return Spark(curve.label, f"{number(float(finite.min()))} to {number(float(finite.max()))}", path, mark)


def _path(x: Series, y: Series, curve: _Curve) -> str:
    """SVG path data of a curve within WIDTH x HEIGHT; a gap where a value is missing, or not positive on a log axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log10(y) if curve.log else y
    known = np.isfinite(level)
    if not known.any():
        return ""
    low, high = curve.range or (float(y[known].min()), float(y[known].max()))
    if curve.log:
        low, high = math.log10(low), math.log10(high)
    scaled = np.clip((level - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    parts = []
    pen_down = False
    for place, value, drawn in zip(x, scaled, known, strict=True):
        if drawn:
            parts.append(f"{'L' if pen_down else 'M'}{WIDTH * place:.0f} {(HEIGHT - 2) * (1 - value) + 1:.0f}")
        pen_down = bool(drawn)
    return "".join(parts)


def spark_svg(spark: Spark) -> Markup:
    """The curve as inline SVG with its onset of collapse marked."""
    mark = "" if spark.mark is None else f'<path class="onset" d="M{spark.mark:g} 0V{HEIGHT}"/>'
    label = f"{spark.label}, {spark.range}"
    return Markup('<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}">{}<path d="{}"/></svg>').format(
        WIDTH, HEIGHT, label, Markup(mark), spark.path
    )
