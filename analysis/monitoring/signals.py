"""Signals that might warn of a collapse: one number per update, greater is more dangerous, nothing from the future.

The orientation of each was fixed before any run was judged: it is the direction in which a paper, or plain sense,
expects trouble. A signal that points the other way is reported as pointing the other way, not turned round.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.series import trailing_mean

Array = NDArray[np.float64]
Role = Literal["weights", "gradient", "policy", "reward", "circumstance"]

HISTORY = 50
"""Earlier updates that a z-score compares the newest with."""
REWARD_WINDOW = 20
"""Updates over which the training reward's mean, variance and autocorrelation are taken."""
CAP = 8.0
"""Cap of `|TIS - 1|`: the comparison's sequence truncation."""

_LEAST_HISTORY = 10
_LEAST_SPREAD = 0.05  # nats of log-norm: a run whose norm hardly moves must not turn rounding into alarms
_LEVELS = {"05": 0.05, "25": 0.25, "50": 0.5, "75": 0.75, "95": 0.95}


class Updates(Protocol):
    """The updates of one run in order, columns of `records.steps.STEPS`: a data frame, or what streams."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of updates."""

    @abstractmethod
    def __contains__(self, name: object, /) -> bool:
        """Whether there is such a column."""

    def __getitem__(self, name: str, /) -> Any:
        """One column, as an array or a series."""


@dataclass(frozen=True)
class Signal:
    """One signal.

    Attributes:
        name: How commands and tables call it.
        meaning: One line, with the formula.
        role: What kind of thing it looks at; `circumstance` is known without looking at the run at all.
        columns: Columns of the table of updates it needs (`records.steps.STEPS`).
        formula: Its values from one run's updates.
        memory: Updates that a value reaches back, itself included; None: to the beginning of the run.
    """

    name: str
    meaning: str
    role: Role
    columns: tuple[str, ...]
    formula: Callable[[Updates], Array]
    memory: int | None = 1

    def of(self, steps: Updates) -> Array:
        """Values [S] at each update of one run; NaN where it cannot be said, everywhere if a column is missing.

        Args:
            steps: The updates of one run in order, columns of `records.steps.STEPS`.
        """
        if any(name not in steps for name in self.columns):
            return np.full(len(steps), np.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = np.asarray(self.formula(steps), dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def _column(steps: Updates, name: str) -> Array:
    return np.asarray(steps[name], dtype=np.float64)


def _trailing_moments(values: Array, window: int) -> tuple[Array, Array, Array]:
    """Number, mean and standard deviation of the finite values in the window that ends at each position."""
    finite = np.isfinite(values)
    mean = trailing_mean(values, window)
    center = float(values[finite][0]) if finite.any() else 0.0  # against cancellation; known at every later update
    square = trailing_mean((values - center) ** 2, window) - (mean - center) ** 2
    number = trailing_mean(finite.astype(np.float64), window) * np.minimum(np.arange(1, values.size + 1), window)
    return number, mean, np.sqrt(np.maximum(square, 0.0))


def _z_score(values: Array) -> Array:
    """The newest value against the `HISTORY` before it, in their standard deviations."""
    number, mean, spread = (np.concatenate([[np.nan], one[:-1]]) for one in _trailing_moments(values, HISTORY))
    score = (values - mean) / np.maximum(spread, _LEAST_SPREAD)
    return np.where(number >= _LEAST_HISTORY - 0.5, score, np.nan)


def _drawdown(steps: Updates) -> Array:
    mean = trailing_mean(_column(steps, "sampled_reward"), REWARD_WINDOW)
    return np.asarray(np.fmax.accumulate(mean) - mean)


def _variance(steps: Updates) -> Array:
    number, _, spread = _trailing_moments(_column(steps, "sampled_reward"), REWARD_WINDOW)
    return np.where(number >= _LEAST_HISTORY - 0.5, spread**2, np.nan)


def _autocorrelation(steps: Updates) -> Array:
    """Lag-1 autocorrelation of the training reward over the trailing window."""
    reward = _column(steps, "sampled_reward")
    before = np.concatenate([[np.nan], reward[:-1]])
    number, first, spread_first = _trailing_moments(np.where(np.isfinite(reward), before, np.nan), REWARD_WINDOW)
    _, second, spread_second = _trailing_moments(np.where(np.isfinite(before), reward, np.nan), REWARD_WINDOW)
    product = trailing_mean(before * reward, REWARD_WINDOW)
    scale = spread_first * spread_second
    return np.where((number >= _LEAST_HISTORY - 0.5) & (scale > 0), (product - first * second) / scale, np.nan)


def _trend(values: Array) -> Array:
    """Kendall's tau of the newest `HISTORY` values against time: 1 where each is above all before it."""
    agree, pairs = np.zeros(values.size), np.zeros(values.size)
    for apart in range(1, min(HISTORY, values.size)):
        sign = np.concatenate([np.full(apart, np.nan), np.sign(values[apart:] - values[:-apart])])
        known = np.isfinite(sign)
        for total, one in ((agree, np.where(known, sign, 0.0)), (pairs, known.astype(np.float64))):
            running = np.concatenate([[0.0], np.cumsum(one)])
            begin = np.maximum(np.arange(1, values.size + 1) - (HISTORY - apart), 0)
            total += running[1:] - running[begin]
    return np.where(pairs >= _LEAST_HISTORY * (_LEAST_HISTORY - 1) / 2, agree / np.maximum(pairs, 1), np.nan)


def _tis_deviation(steps: Updates) -> Array:
    """Mean `|min(w, 8) - 1|` by the trapezoidal rule over the recorded quantiles of the log-weights."""
    heights = [np.abs(np.minimum(np.exp(_column(steps, f"log_weight_q{q}")), CAP) - 1) for q in _LEVELS]
    top = np.abs(np.minimum(np.exp(_column(steps, "log_weight_max")), CAP) - 1)
    return np.asarray(np.trapezoid([heights[0], *heights, top], [0.0, *_LEVELS.values(), 1.0], axis=0))


def _plain(name: str, meaning: str, role: Role, column: str, sign: int = 1) -> Signal:
    return Signal(name, meaning, role, (column,), lambda steps: sign * _column(steps, column))


def _log(name: str, meaning: str, role: Role, column: str, sign: int = 1) -> Signal:
    return Signal(name, meaning, role, (column,), lambda steps: sign * np.log(_column(steps, column)))


_ALL = (
    _log("ess", "Kish ESS of the raw sequence weights is low: -log(ess_ratio)", "weights", "ess_ratio", -1),
    _log("ess_used", "ESS of the weights the method applied is low: -log", "weights", "ess_ratio_used", -1),
    _log("token_ess", "ESS of the token ratios is low: -log(token_ess_ratio)", "weights", "token_ess_ratio", -1),
    _plain("kl", "token KL(mu || theta), estimator k3", "weights", "kl_mu_theta_k3"),
    Signal(
        "kl_length",
        "token KL (k3) times mean length",
        "weights",
        ("kl_mu_theta_k3", "length_mean"),
        lambda steps: _column(steps, "kl_mu_theta_k3") * _column(steps, "length_mean"),
    ),
    _plain("max_weight", "largest sequence log-weight", "weights", "log_weight_max"),
    Signal(
        "tis",
        "mean |min(w, 8) - 1| from the recorded quantiles of the weights",
        "weights",
        ("log_weight_max", *(f"log_weight_q{q}" for q in _LEVELS)),
        _tis_deviation,
    ),
    _plain("clipped", "share of tokens clipped or capped", "weights", "share_clipped"),
    _log("grad_norm", "log of the gradient norm before clipping", "gradient", "grad_norm"),
    Signal(
        "grad_norm_z",
        f"log gradient norm against the {HISTORY} updates before, in standard deviations",
        "gradient",
        ("grad_norm",),
        lambda steps: _z_score(np.log(_column(steps, "grad_norm"))),
        HISTORY + 1,
    ),
    _log("head_norm", "log of the output head's gradient norm", "gradient", "head_grad_norm"),
    Signal(
        "head_norm_z",
        f"log head gradient norm against the {HISTORY} updates before, in standard deviations",
        "gradient",
        ("head_grad_norm",),
        lambda steps: _z_score(np.log(_column(steps, "head_grad_norm"))),
        HISTORY + 1,
    ),
    _plain("grad_cosine", "cosine of consecutive gradients is high (GAC)", "gradient", "grad_cosine"),
    _plain("entropy_low", "entropy of the policy is low: -entropy", "policy", "entropy", -1),
    _plain("entropy_high", "entropy of the policy is high", "policy", "entropy"),
    _plain("reward_low", "training reward is low: -sampled_reward", "reward", "sampled_reward", -1),
    Signal(
        "reward_drop",
        f"best trailing mean ({REWARD_WINDOW}) of the training reward so far, minus the present one",
        "reward",
        ("sampled_reward",),
        _drawdown,
        None,
    ),
    Signal(
        "reward_variance",
        f"variance of the training reward over {REWARD_WINDOW} updates",
        "reward",
        ("sampled_reward",),
        _variance,
        REWARD_WINDOW,
    ),
    Signal(
        "reward_autocorrelation",
        f"lag-1 autocorrelation of the training reward over {REWARD_WINDOW} updates",
        "reward",
        ("sampled_reward",),
        _autocorrelation,
        REWARD_WINDOW + 1,
    ),
    Signal(
        "variance_trend",
        f"Kendall's tau of that variance over {HISTORY} updates",
        "reward",
        ("sampled_reward",),
        lambda steps: _trend(_variance(steps)),
        HISTORY + REWARD_WINDOW,
    ),
    Signal(
        "autocorrelation_trend",
        f"Kendall's tau of that autocorrelation over {HISTORY} updates",
        "reward",
        ("sampled_reward",),
        lambda steps: _trend(_autocorrelation(steps)),
        HISTORY + REWARD_WINDOW + 1,
    ),
    _plain("step", "the update's number: a clock", "circumstance", "step"),
    _plain("lag", "largest lag of the consumed trajectories", "circumstance", "lag_max"),
    Signal(
        "lr",
        "log of the base learning rate: lr / step_scale",
        "circumstance",
        ("lr", "step_scale"),
        lambda steps: np.log(np.round(_column(steps, "lr") / _column(steps, "step_scale"), 12)),
    ),
)

SIGNALS: dict[str, Signal] = {signal.name: signal for signal in _ALL}
"""Every signal by name."""
PRIMARY = "ess"
"""The one whose prediction is the primary endpoint; every other comparison is exploratory."""
