"""The curves of one cell: path data of a kilobyte each, and the scales from which the page draws axes when asked."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from vcpo_bench.reports.formatting import number
from vcpo_bench.reports.plots.ticks import noise_floor
from vcpo_bench.reports.study import Curves, Series, Study, bin_edges, binned

WIDTH, HEIGHT, BINS = 300, 90, 60


class _Curve(NamedTuple):
    """What a curve shows; without a range it is scaled to its own values."""

    label: str
    unit: str
    table: str
    column: str
    log: bool
    range: tuple[float, float] | None


_KL = "kl_mu_theta_k3"
_CURVES = (
    _Curve("reward", "mean of sampled responses", "evals", "sampled_reward", False, (0.0, 1.0)),
    _Curve("ESS ratio", "share of the batch", "steps", "ess_ratio", True, (0.005, 1.0)),
    _Curve("gradient norm", "before clipping", "steps", "grad_norm", True, None),
    _Curve("KL", "nats/token", "steps", _KL, True, None),
    _Curve("lag", "updates, mean over tokens", "steps", "lag_mean", False, None),
)


@dataclass(frozen=True)
class Spark:
    """A curve: what it shows, its range in words, the SVG path data, and its scales.

    Attributes:
        label: Name of the quantity.
        unit: Its unit.
        range: Smallest to largest value, in words.
        path: SVG path data within `WIDTH` x `HEIGHT`.
        low: Value at the lower edge.
        high: Value at the upper edge.
        log: Whether the scale is logarithmic.
        last: Update at the right edge; update 0 is at the left one.
        onset: Update of the onset of a failure, if there is one.
        asked: The requested value, where there is one: a level to compare with.
    """

    label: str
    unit: str
    range: str
    path: str
    low: float
    high: float
    log: bool
    last: float
    onset: float | None
    asked: float | None = None

    @property
    def mark(self) -> float | None:
        """Where the onset is, between 0 and `WIDTH`."""
        return None if self.onset is None else round(WIDTH * self.onset / self.last, 1)


def sparks_of(study: Study, key: str, onset: float, lag: int) -> list[Spark]:
    """The curves of a cell that have values.

    Args:
        study: What was recorded.
        key: The cell's key.
        onset: Update of the onset of a failure; NaN: none.
        lag: The requested lag.
    """
    return [one for curve in _CURVES if (one := _spark(study, key, onset, lag, curve)) is not None]


def _spark(study: Study, key: str, onset: float, lag: int, curve: _Curve) -> Spark | None:
    rows: Curves | None = getattr(study, curve.table).get(key)
    if rows is None:
        return None
    steps, values = rows["step"], rows[curve.column]
    if not np.isfinite(values).any():
        return None
    last = float(steps.max())
    if steps.size > BINS:
        edges = bin_edges(int(last), BINS)
        steps, values = np.minimum((edges[:-1] + edges[1:]) / 2, last), binned(steps, values, edges)
    finite = values[np.isfinite(values)]
    asked = float(lag) if curve.column == "lag_mean" else None
    low, high = _scale(values, curve, asked, noise_floor(np.array([study.largest_kl])))
    path = _path(steps / max(last, 1.0), values, (low, high), curve.log)
    words = f"{number(float(finite.min()))} to {number(float(finite.max()))}"
    mark = None if pd.isna(onset) else float(onset)
    return Spark(curve.label, curve.unit, words, path, low, high, curve.log, max(last, 1.0), mark, asked)


def _scale(values: Series, curve: _Curve, asked: float | None, floor: float) -> tuple[float, float]:
    """Values at the lower and upper edge; a KL below the floor lies on the lower one."""
    if curve.range is not None:
        return curve.range
    if asked is not None:
        return 0.0, max(float(np.nanmax(values)), asked, 1.0) * 1.05
    with np.errstate(invalid="ignore"):
        known = values[np.isfinite(values) & (values > 0)] if curve.log else values[np.isfinite(values)]
    if not known.size:
        return 1.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (max(low, floor), max(high, 10 * floor)) if curve.column == _KL else (low, high)


def _path(x: Series, y: Series, scale: tuple[float, float], log: bool) -> str:
    """SVG path data of a curve within WIDTH x HEIGHT; a gap where a value is missing, or not positive on a log axis."""
    low, high = scale
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log10(y) if log else y
    known = np.isfinite(level)
    if log:
        low, high = math.log10(low), math.log10(high)
    scaled = np.clip((level - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    across = np.rint(WIDTH * x[known]).astype(np.int64).tolist()
    down = np.rint((HEIGHT - 2) * (1 - scaled[known]) + 1).astype(np.int64).tolist()
    goes_on = np.concatenate([[False], known[:-1]])[known].tolist()
    points = zip(goes_on, across, down, strict=True)
    return "".join([f"{'L' if line else 'M'}{right} {below}" for line, right, below in points])


def spark_svg(spark: Spark) -> Markup:
    """The curve as inline SVG with its onset of collapse marked, and the scales for its axes."""
    mark = "" if spark.mark is None else f'<path class="onset" d="M{spark.mark:g} 0V{HEIGHT}"/>'
    numbers = [float(f"{one:.4g}") for one in (spark.last, spark.low, spark.high)]
    scales = json.dumps([*numbers, int(spark.log), spark.onset, spark.asked])
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}" data-scales="{}">{}<path d="{}"/></svg>'
    ).format(WIDTH, HEIGHT, f"{spark.label}, {spark.range}", scales, Markup(mark), spark.path)
