"""Questions that people ask of a log, each answered in a sentence where the log holds the answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.causes.weights import ZERO, anchor_moved
from vcpo_bench.analysis.diagnosis.departures import start_size
from vcpo_bench.analysis.diagnosis.diagnosis import FELL, Outcome
from vcpo_bench.analysis.logs.run import LoggedRun

_ROWS = 5
_LAG = ("lag_max", "lag_mean")


def find_answers(run: LoggedRun, outcome: Outcome) -> tuple[str, ...]:
    """The answers that this log gives, one sentence each."""
    found = (
        _zero_loss(run),
        _masked_ratio(run),
        _idle_correction(run),
        _silent_clip(run),
        _untrue_truncation(run),
        _age(run, outcome),
    )
    return tuple(filter(None, found))


def _values(run: LoggedRun, column: str) -> NDArray[np.float64]:
    return run.series[column].finite[1] if column in run.series else np.empty(0)


def _always(run: LoggedRun, column: str, value: float) -> bool:
    """Whether a column has this value in all of its rows, and enough of them."""
    values = _values(run, column)
    return values.size >= _ROWS and bool(np.abs(values - value).max() <= ZERO)


def _zero_loss(run: LoggedRun) -> str:
    norm, spread = _values(run, "grad_norm"), _values(run, "reward_std")
    if not _always(run, "loss", 0) or not (norm.any() or (not norm.size and spread.any())):
        return ""
    gradient = f" (norm {np.median(norm):.2g})" if norm.size else ", as long as rewards within a group differ"
    return (
        "Why is the loss 0? By construction, and that is normal: with one optimizer update per batch each ratio is 1 "
        f"and the advantages of a group sum to 0. The gradient is not 0{gradient}."
    )


def _masked_ratio(run: LoggedRun) -> str:
    series, mean = run.series.get("weight_mean"), _values(run, "weight_mean")
    if series is None or series.source.tag != "truncated" or mean.size < _ROWS or np.median(mean) > 0.9:
        return ""
    return (
        f"Is a mean ratio of {np.median(mean):.2f} a fault? No: {series.logged_as[0]} is a mean after truncation or "
        "masking, where masked sequences count as 0, so it is below 1 by construction."
    )


def _idle_correction(run: LoggedRun) -> str:
    if not _always(run, "weight_mean", 1):
        return ""
    name = run.series["weight_mean"].logged_as[0]
    return f"Is the correction acting? No: {name} is 1 in each of {_values(run, 'weight_mean').size} rows."


def _silent_clip(run: LoggedRun) -> str:
    silent = [run.series[one].logged_as[0] for one in ("kl_anchor", "share_clipped") if _always(run, one, 0)]
    if not silent or anchor_moved(run):
        return ""
    lag = _values(run, "lag_mean")
    old = lag.size >= _ROWS and float(np.median(lag)) >= 1
    but = f" The data are {np.median(lag):.3g} versions old, and clipping never acts on that." if old else ""
    loss = "" if "kl_anchor" in run.series else " A loss that never clips, such as SAPO, is logged so as well."
    return (
        f"Why is {' and '.join(silent)} always 0? By construction: with one optimizer update per batch the anchor "
        f"of the ratio is the policy itself, in healthy runs too.{loss}{but}"
    )


def _untrue_truncation(run: LoggedRun) -> str:
    """Verl's V1 trainer takes the longest response of a batch for the limit (verl#7817)."""
    cut, longest = _values(run, "truncated_share"), _values(run, "length_max")
    if cut.size < _ROWS or longest.size < _ROWS or not cut.all() or np.unique(longest).size <= longest.size / 2:
        return ""
    name = run.series["truncated_share"].logged_as[0]
    return (
        f"Is the logged truncation rate true? No: {name} is never 0 although the longest response differs from row to "
        f"row ({longest.min():g} to {longest.max():g} tokens): it counts responses as long as the longest of their "
        "batch, not those at the limit (verl#7817)."
    )


def _age(run: LoggedRun, outcome: Outcome) -> str:
    """What the log shows of lags that went well, and of those before a fall."""
    column = next((one for one in _LAG if _values(run, one).size >= _ROWS), "")
    if not column:
        return ""
    steps, lag = run.series[column].finite
    name, start = run.series[column].logged_as[0], float(np.median(lag[: start_size(lag.size)]))
    if outcome.verdict == "healthy" and lag.max() >= 1:
        return f"How stale may a sample be? This run did well with {name} up to {lag.max():.3g}."
    before = lag[steps <= outcome.onset + outcome.resolution]
    if outcome.verdict in FELL and before.size and before.max() > start + 1:
        return (
            f"How stale may a sample be? Less than here: {name} went from {start:.3g} to {before.max():.3g} before the "
            "reward fell."
        )
    return ""
