"""Questions that people ask of a log, each answered in a sentence where the log holds the answer."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.logs.run import LoggedRun

_ROWS = 5
_ZERO = 1e-6


def find_answers(run: LoggedRun) -> tuple[str, ...]:
    """The answers that this log gives, one sentence each."""
    return tuple(filter(None, (_zero_loss(run), _masked_ratio(run), _age(run))))


def _values(run: LoggedRun, column: str) -> np.ndarray:
    return run.series[column].finite[1] if column in run.series else np.empty(0)


def _zero_loss(run: LoggedRun) -> str:
    loss, norm = _values(run, "loss"), _values(run, "grad_norm")
    if loss.size < _ROWS or np.abs(loss).max() > _ZERO or not norm.any():
        return ""
    return (
        "Why is the loss 0? By construction, and that is normal: with one optimizer update per batch each ratio is 1 "
        f"and the advantages of a group sum to 0. The gradient is not 0 (norm {np.median(norm):.2g})."
    )


def _masked_ratio(run: LoggedRun) -> str:
    series, mean = run.series.get("weight_mean"), _values(run, "weight_mean")
    if series is None or series.source.tag != "truncated" or mean.size < _ROWS or np.median(mean) > 0.9:
        return ""
    return (
        f"Is a mean ratio of {np.median(mean):.2f} a fault? No: {series.logged_as[0]} is a mean after truncation or "
        "masking, where masked sequences count as 0, so it is below 1 by construction."
    )


def _age(run: LoggedRun) -> str:
    clipped, lag = _values(run, "share_clipped"), _values(run, "lag_mean")
    if clipped.size < _ROWS or clipped.any() or lag.size < _ROWS or np.median(lag) < 1:
        return ""
    return (
        f"Is clipping acting? Never: the data are {np.median(lag):.3g} versions old, and no token was clipped, since "
        "the anchor of the ratio is the policy itself with one update per batch."
    )
