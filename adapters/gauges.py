"""The raw sequence weights current/behavior of an optimizer step, as numbers for a trainer's log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.analysis.monitoring.alarm_panel import Alarm
from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.monitor import Monitor, Reading

LOGGED = "monitor/"
"""Prefix of the gauges in a log."""
logger = logging.getLogger(__name__)

QUANTILES = {f"log_weight_q{percent:02}": percent / 100 for percent in (5, 25, 50, 75, 95)}


def by_row(behavior: Tensor, logp: Tensor, mask: Tensor) -> Tensor:
    """`[B, 3]` of each row: log-weight, length, and the sum over its tokens of the k3 estimate of the KL.

    Log-ratios above 80 count as 80 in the exponential, which would overflow, as in `records.steps.divergence`.

    Args:
        behavior: `[B, T]` log-probabilities under the policy that sampled.
        logp: `[B, T]` under the current policy.
        mask: `[B, T]` bool.
    """
    ratio = torch.where(mask, logp - behavior, 0.0)
    k3 = torch.expm1(ratio.clamp(max=80.0)) - ratio
    return torch.stack([ratio.sum(1), mask.sum(1).to(ratio.dtype), k3.sum(1)], 1)


class WeightGauges:
    """The gauges of one run.

    Args:
        calibrations: Detectors, or the file that `vcpo-bench lab calibrate` wrote; None: those of the package.

    Attributes:
        off: Looking failed once, and nothing is looked at any more.
    """

    def __init__(self, calibrations: Sequence[Calibration] | str | Path | None = None) -> None:
        self._monitor = Monitor(calibrations)
        self._speaking: set[str] = set()
        self.off = False

    def attempt(self, look: Callable[[], None]) -> None:
        """Do what only looks at a run. Its first failure is a warning and the last attempt: the run goes on."""
        if self.off:
            return
        try:
            look()
        except Exception as error:
            self.off = True
            logger.warning("the monitor is off for the rest of this run: %s: %s", type(error).__name__, error)

    def read(self, rows: Tensor, reward: float | None, entropy: float | None) -> tuple[Reading, dict[str, float]]:
        """The reading of one optimizer step, and every number of it by the name it has in a log.

        Args:
            rows: `[n, 3]` what `by_row` returns, of all ranks. Rows without a token have no weight and do not count,
                unless there are no others.
            reward: Mean reward of the newest samples.
            entropy: Mean entropy, nats per token.
        """
        live = rows[:, 1] > 0
        log_weight, length, k3 = (rows[live] if bool(live.any()) else rows).double().cpu().unbind(1)
        reading = self._monitor.step(
            log_weight.numpy(),
            rewards=reward,
            lengths=length.numpy(),
            token_kl=float(k3.sum() / length.sum().clamp(min=1)),
            entropy=entropy,
        )
        with np.errstate(invalid="ignore"):  # between weights of zero
            quantiles = np.quantile(log_weight.numpy(), list(QUANTILES.values()))
        numbers = {**reading.gauges(), **dict(zip(QUANTILES, quantiles, strict=True)), "alarms": len(reading.alarms)}
        return reading, {f"{LOGGED}{name}": float(value) for name, value in numbers.items()}

    def begun(self, reading: Reading) -> list[Alarm]:
        """The alarms of this reading that the one before did not have."""
        before, self._speaking = self._speaking, {alarm.calibration.detector.text for alarm in reading.alarms}
        return [alarm for alarm in reading.alarms if alarm.calibration.detector.text not in before]
