"""Many diagnosed runs as one self-contained HTML page: no network, no script, no dates."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.chain import chain_sentence
from vcpo_bench.analysis.diagnosis.index import IndexedRun
from vcpo_bench.files.atomic import write_text

_WIDTH, _HEIGHT, _MOST_POINTS = 160, 28, 160


def write_index(rows: Sequence[IndexedRun], root: Path, target: Path) -> Path:
    """Write the page; the folder of the file must exist."""
    write_text(target, index_page(rows, root), typed=True)
    return target


def index_page(rows: Sequence[IndexedRun], root: Path) -> str:
    """The page as text."""
    templates = resources.files("vcpo_bench.reports.writers") / "templates"
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["num"] = lambda value: "" if np.isnan(value) else f"{value:.6g}"
    template = environment.from_string((templates / "diagnosis_index.html.j2").read_text(encoding="utf-8"))
    lines = [
        (row.name(root), row, chain_sentence(row.found.chain) if row.found is not None else "", curve(row.curve))
        for row in rows
    ]
    style = Markup((templates / "page.css").read_text(encoding="utf-8"))
    return template.render(root=str(root), lines=lines, style=style)


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
