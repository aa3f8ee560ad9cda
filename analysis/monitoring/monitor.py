"""A monitor for any training loop: give it what one update saw, read gauges and alarms with measured error rates.

Needs numpy only, and less than a millisecond per update of 128 trajectories:

    monitor = Monitor()
    ...
    reading = monitor.step(log_weights=(logp_now - logp_sampler).sum(-1), rewards=rewards, grad_norm=norm)
    if reading.alarms: print(reading)

Every gauge is of one batch. A batch cannot show the rare large weights it did not draw, so ESS ratios come out too
large and tails too light, the more so the smaller the batch (`docs/monitor.md`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.arrays import as_floats, as_number
from vcpo_bench.analysis.diagnostics.ess import entropy_ess, kish_ess, max_weight_ess
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k, reliability_limit
from vcpo_bench.analysis.monitoring.alarm_panel import Alarm, AlarmPanel
from vcpo_bench.analysis.monitoring.calibration import Calibration, chosen_calibrations
from vcpo_bench.analysis.monitoring.signals.weights import CAP
from vcpo_bench.records.steps import DIAGNOSTICS

Array = NDArray[np.float64]

WINDOW = 20
"""Updates whose weights are pooled for one k-hat, and over which the reward's trend is taken."""

_QUANTILES = {f"log_weight_q{name}": int(name) / 100 for name in ("05", "25", "50", "75", "95")}
_WEIGHT_GAUGES = ("ess", "entropy_ess", "max_share", "max_log_weight", "log_weight_var", "tis_deviation")


@dataclass(frozen=True)
class Reading:
    """What one update looked like. A gauge whose input was not given is NaN.

    Attributes:
        step: Updates seen before this one.
        n: Trajectories in the batch.
        ess: Kish ESS ratio of the raw sequence weights, 1/n to 1.
        entropy_ess: Perplexity of the normalized weights over n, 1/n to 1: less dominated by the largest weight.
        max_share: Share of all weight on the heaviest trajectory, 1/n to 1.
        max_log_weight: Largest log-weight, nats.
        log_weight_var: Population variance of the log-weights, nats^2; ESS of infinitely many is about exp(-this).
        kl_length: Token KL (k3) times mean length, nats per sequence; about half the variance.
        tis_deviation: Mean `|min(w, 8) - 1|`: 0 on policy.
        pareto_k: Tail index of the weights pooled over the last updates; from `pareto_limit` on, that many weights do
            not suffice for an average. NaN on policy and where fewer than 25 were seen.
        pareto_n: How many weights were pooled.
        pareto_limit: `min(1 - 1/log10 n, 0.7)` of these.
        grad_norm_z: Log gradient norm against the 50 updates before, in standard deviations.
        entropy: Entropy of the policy, nats per token, as given.
        reward: Mean reward.
        reward_trend: Slope of the mean reward over the last updates, reward per update.
        nonfinite: Log-weights that are NaN or +infinite; the weight gauges are then NaN.
        alarms: Alarms after this update.
        silent: Signals that could not be computed from what was given: their detectors cannot raise an alarm.
    """

    step: int
    n: int
    ess: float
    entropy_ess: float
    max_share: float
    max_log_weight: float
    log_weight_var: float
    kl_length: float
    tis_deviation: float
    pareto_k: float
    pareto_n: int
    pareto_limit: float
    grad_norm_z: float
    entropy: float
    reward: float
    reward_trend: float
    nonfinite: int
    alarms: tuple[Alarm, ...]
    silent: tuple[str, ...]

    def gauges(self) -> dict[str, float]:
        """Every number by name, for a logger."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("step", "alarms", "silent")}

    def __str__(self) -> str:
        """One line of gauges, then one line per alarm."""
        shown = " ".join(f"{name} {value:.3g}" for name, value in self.gauges().items() if value == value)
        return "\n".join([f"step {self.step}: {shown}", *(f"ALARM {alarm}" for alarm in self.alarms)])


class Monitor:
    """Gauges and alarms of one run, one update at a time.

    Args:
        calibrations: Detectors, or the file that `vcpo-bench lab calibrate` wrote; None: those of the package, with
            the error rates their study measured.

    Raises:
        UsageError: A detector watches a signal that does not exist.
    """

    def __init__(self, calibrations: Sequence[Calibration] | str | Path | None = None) -> None:
        self._panel = AlarmPanel(chosen_calibrations(calibrations), ("grad_norm_z",))
        self._weights: deque[Array] = deque(maxlen=WINDOW)
        self._rewards: deque[float] = deque(maxlen=WINDOW)
        self._step = 0

    def step(
        self,
        log_weights: ArrayLike,
        *,
        rewards: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        token_kl: float | None = None,
        grad_norm: float | None = None,
        entropy: float | None = None,
        columns: Mapping[str, float] | None = None,
    ) -> Reading:
        """Take what one update saw and read the gauges.

        Every number may be a torch tensor as the loop holds it: on a GPU, in bfloat16, with gradient history.

        Args:
            log_weights: Shape [n]: log pi_theta(y|x) - log mu(y|x) of each trajectory, summed over its tokens, in
                nats, before any clipping.
            rewards: Rewards of the newest batch, any shape.
            lengths: Loss-carrying tokens of each trajectory, any shape.
            token_kl: Mean over tokens of `e^l - 1 - l` with l the token log-ratio, nats per token.
            grad_norm: Norm of the whole gradient before clipping.
            entropy: Mean entropy of the policy, nats per token.
            columns: Further columns of `records.steps.STEPS` for a detector that watches them, such as
                `grad_cosine`.

        Raises:
            ValueError: There is no log-weight, they have several axes, a column is unknown, or what should be one
                number is several.
        """
        log_w = _flat(as_floats(log_weights))
        _check(log_w, columns or {})
        token_kl, grad_norm, entropy = (
            None if value is None else as_number(name, value)
            for name, value in (("token_kl", token_kl), ("grad_norm", grad_norm), ("entropy", entropy))
        )
        given = {name: as_number(name, value) for name, value in (columns or {}).items()}
        weights, reward, length = _weight_gauges(log_w), _mean(rewards), _mean(lengths)
        row: dict[str, float | None] = {
            "step": self._step,
            "ess_ratio": weights["ess"],
            "log_weight_max": weights["max_log_weight"],
            "log_weight_var": weights["log_weight_var"],
            "kl_mu_theta_k3": token_kl,
            "length_mean": length,
            "entropy": entropy,
            "grad_norm": grad_norm,
            "sampled_reward": reward,
            "batch_reward": reward,
        }
        if self._panel.columns & set(_QUANTILES):
            with np.errstate(invalid="ignore"):  # between weights of zero
                row |= zip(_QUANTILES, np.quantile(log_w, list(_QUANTILES.values())), strict=True)
        alarms = self._panel.feed({**row, **given})
        k, pooled = self._tail(log_w)
        reading = Reading(
            step=self._step,
            n=log_w.size,
            **weights,
            kl_length=length * _number(token_kl),
            pareto_k=k,
            pareto_n=pooled,
            pareto_limit=reliability_limit(pooled),
            grad_norm_z=self._panel.values["grad_norm_z"],
            entropy=_number(entropy),
            reward=reward,
            reward_trend=self._trend(reward),
            nonfinite=_broken(log_w),
            alarms=alarms,
            silent=self._panel.silent,
        )
        self._step += 1
        return reading

    def _tail(self, log_w: Array) -> tuple[float, int]:
        """K-hat of the weights of the last updates, and how many they are; an update with broken ones is left out."""
        if not _broken(log_w):
            self._weights.append(log_w)
        if not self._weights:
            return float("nan"), 0
        pooled = np.concatenate(self._weights)
        return float(pareto_k(pooled)), pooled.size

    def _trend(self, reward: float) -> float:
        """Slope of a straight line through the rewards of the last updates; NaN with fewer than two."""
        self._rewards.append(reward)
        values = np.array(self._rewards)
        at = np.flatnonzero(np.isfinite(values))
        if at.size < 2:
            return float("nan")
        centered = at - at.mean()
        return float(centered @ values[at] / (centered @ centered))


def _flat(log_weights: Array) -> Array:
    if sum(size > 1 for size in log_weights.shape) > 1:
        raise ValueError(
            f"log_weights has the shape {list(log_weights.shape)}, and one number per trajectory is expected: sum over "
            "the tokens with .sum(-1), or flatten trajectories in groups with .reshape(-1)"
        )
    return log_weights.ravel()


def _check(log_w: Array, columns: Mapping[str, float]) -> None:
    if log_w.size == 0:
        raise ValueError("log_weights is empty: an update consumes at least one trajectory")
    unknown = sorted(columns.keys() - DIAGNOSTICS.keys())
    if unknown:
        raise ValueError(f"no column is called {unknown[0]!r}; columns are those of vcpo_bench.records.steps.STEPS")


def _weight_gauges(log_w: Array) -> dict[str, float]:
    if _broken(log_w):
        return dict.fromkeys(_WEIGHT_GAUGES, float("nan"))
    capped = np.exp(np.minimum(log_w, np.log(CAP)))
    finite = bool(np.isfinite(log_w).all())
    return {
        "ess": float(kish_ess(log_w)),
        "entropy_ess": float(entropy_ess(log_w)),
        "max_share": 1 / (log_w.size * float(max_weight_ess(log_w))),
        "max_log_weight": float(log_w.max()),
        "log_weight_var": float(log_w.var()) if finite else float("nan"),
        "tis_deviation": float(np.abs(capped - 1).mean()),
    }


def _broken(log_w: Array) -> int:
    """How many log-weights are NaN or +infinite; -infinite is a weight of zero."""
    return int(np.count_nonzero(np.isnan(log_w) | np.isposinf(log_w)))


def _mean(values: ArrayLike | None) -> float:
    return float("nan") if values is None else float(np.mean(as_floats(values)))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
