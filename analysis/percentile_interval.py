"""The interval of a bootstrap. Apart from the other intervals, for it needs numpy only, and so does the monitor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def percentile_interval(value: float, drawn: ArrayLike) -> tuple[float, float]:
    """95% percentile-bootstrap interval of an estimate, widened to include it.

    Args:
        value: The estimate from all values.
        drawn: The estimate in each replication; NaN is left out.

    Returns:
        (NaN, NaN) without a finite replication.
    """
    values = np.asarray(drawn, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return (float("nan"), float("nan"))
    low, high = (float(end) for end in np.quantile(finite, [0.025, 0.975]))
    return (min(low, value), max(high, value))
