"""How long until runs fail? Kaplan-Meier curves, restricted means and the stratified log-rank test, with censoring."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class LogRank(NamedTuple):
    """Result of a log-rank test; p is NaN where there is nothing to compare."""

    chi2: float
    degrees: int
    p: float


def kaplan_meier(time: ArrayLike, event: ArrayLike) -> pd.DataFrame:
    """Survival curve with 95% log-log (exponential Greenwood) intervals.

    Args:
        time: When each run failed or was last seen, shape [n]; infinite: it is at risk for ever.
        event: True where it failed, False where it was censored, shape [n].

    Returns:
        One row per distinct time, beginning with 0: `time`, `at_risk`, `events`, `censored`, `survival`,
        `low`, `high`. Where survival is 0 or 1 the interval is degenerate: the bounds equal it.

    Raises:
        ValueError: A time is NaN: such a run was never seen, and belongs in no risk set.
    """
    seen, failed = _known_times(time), np.asarray(event, dtype=bool)
    times = np.unique(np.concatenate([[0.0], seen]))
    at_risk = (seen[None, :] >= times[:, None]).sum(axis=1)
    events = ((seen[None, :] == times[:, None]) & failed).sum(axis=1)
    censored = ((seen[None, :] == times[:, None]) & ~failed).sum(axis=1)
    survival = np.cumprod(1 - events / np.maximum(at_risk, 1))
    greenwood = _greenwood(at_risk, events)
    inside = (survival > 0) & (survival < 1)
    log_survival = np.log(np.where(inside, survival, 0.5))
    half = float(scipy.special.ndtri(0.975)) * np.sqrt(np.where(inside, np.cumsum(greenwood), 0.0)) / log_survival
    low = np.where(inside, np.exp(log_survival * np.exp(-half)), survival)
    high = np.where(inside, np.exp(log_survival * np.exp(half)), survival)
    return pd.DataFrame(
        {
            "time": times,
            "at_risk": at_risk,
            "events": events,
            "censored": censored,
            "survival": survival,
            "low": low,
            "high": high,
        }
    )


def median_survival(curve: pd.DataFrame) -> float:
    """First time at which half or fewer survive; infinite where the curve stays above.

    Computed from the counts `at_risk` and `events` of `kaplan_meier`: the rounded product of shares may miss one half.
    """
    left, total = 1, 1
    for time, at_risk, events in zip(curve["time"], curve["at_risk"], curve["events"], strict=True):
        if events:
            left, total = left * int(at_risk - events), total * int(at_risk)
            if 2 * left <= total:
                return float(time)
    return float("inf")


def restricted_mean(curve: pd.DataFrame, horizon: float) -> tuple[float, float, float]:
    """Mean time survived up to the horizon with its 95% interval (Greenwood), clipped to [0, horizon].

    Args:
        curve: Of `kaplan_meier`.
        horizon: Same unit as the times; at most the last time seen; beyond it the curve is extended flat.
    """
    time, survival = curve["time"].to_numpy(), curve["survival"].to_numpy()
    widths = np.diff(np.append(np.minimum(time, horizon), horizon))
    pieces = survival * np.maximum(widths, 0.0)
    mean = float(pieces.sum())
    remaining = pieces[::-1].cumsum()[::-1]
    greenwood = _greenwood(curve["at_risk"].to_numpy(), curve["events"].to_numpy())
    variance = float((remaining**2 * greenwood)[time <= horizon].sum())
    half = float(scipy.special.ndtri(0.975)) * np.sqrt(variance)
    return mean, max(mean - half, 0.0), min(mean + half, horizon)


def log_rank(time: ArrayLike, event: ArrayLike, group: ArrayLike, stratum: ArrayLike | None = None) -> LogRank:
    """Log-rank test that all groups fail at the same rate within every stratum.

    Args:
        time: Shape [n].
        event: True where the run failed, shape [n].
        group: Which group a run belongs to, shape [n]; at least two.
        stratum: Which stratum (task, lag, learning rate); None: one.

    Raises:
        ValueError: A time is NaN.
    """
    seen, failed = _known_times(time), np.asarray(event, dtype=bool)
    names, member = np.unique(np.asarray(group), return_inverse=True)
    layer = np.zeros(seen.size) if stratum is None else np.asarray(stratum)
    surplus, covariance = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for one in np.unique(layer):
        here = layer == one
        difference, spread = _observed_minus_expected(seen[here], failed[here], member[here], len(names))
        surplus += difference
        covariance += spread
    degrees = int(np.linalg.matrix_rank(covariance))
    if degrees == 0:
        return LogRank(0.0, 0, float("nan"))
    chi2 = float(surplus @ np.linalg.pinv(covariance) @ surplus)
    return LogRank(chi2, degrees, float(scipy.special.chdtrc(degrees, chi2)))


def least_p(group: ArrayLike, stratum: ArrayLike) -> float:
    """Smallest p that an exact test could give: 1 over the ways to deal the runs out to the groups, strata apart.

    Dealings that only exchange groups of equal size in every stratum give the same statistic and count together.

    Args:
        group: Which group a run belongs to, shape [n].
        stratum: Which stratum it is in, shape [n].
    """
    sizes = pd.crosstab(np.asarray(stratum), np.asarray(group)).to_numpy()
    ways = math.prod(math.factorial(int(row.sum())) for row in sizes)
    same = math.prod(math.factorial(int(size)) for size in sizes.ravel())
    alike = np.unique(sizes, axis=1, return_counts=True)[1]
    return min(1.0, float(Fraction(same * math.prod(math.factorial(int(one)) for one in alike), ways)))


def _known_times(time: ArrayLike) -> Array:
    seen = np.asarray(time, dtype=np.float64)
    unknown = int(np.isnan(seen).sum())
    if unknown:
        raise ValueError(f"{unknown} of {seen.size} times are NaN; leave out runs that were never seen")
    return seen


def _observed_minus_expected(
    time: Array, event: NDArray[np.bool_], member: NDArray[np.int64], groups: int
) -> tuple[Array, Array]:
    """Failures minus expected failures per group, and their hypergeometric covariance, within one stratum."""
    times = np.unique(time[event])
    belongs = member[:, None] == np.arange(groups)
    at_risk = (time[None, :] >= times[:, None]).astype(np.float64) @ belongs
    observed = ((time[None, :] == times[:, None]) & event).astype(np.float64) @ belongs
    total, failures = at_risk.sum(axis=1), observed.sum(axis=1)
    share = at_risk / total[:, None]
    factor = failures * (total - failures) / np.maximum(total - 1, 1)
    covariance = np.diag((factor[:, None] * share).sum(axis=0)) - (factor[:, None] * share).T @ share
    return (observed - failures[:, None] * share).sum(axis=0), covariance


def _greenwood(at_risk: NDArray[np.int64], events: NDArray[np.int64]) -> Array:
    left = at_risk - events
    return np.where(left > 0, events / np.maximum(at_risk * left, 1), 0.0)
