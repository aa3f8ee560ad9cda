"""Raw importance weights in TRL's own log: ESS, tails and alarms, in two lines.

trainer = GRPOTrainer(...)
trainer.add_callback(MonitorCallback(trainer))
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.gauges import WeightGauges, by_row
from vcpo_bench.adapters.trl.scoring import loss_mask
from vcpo_bench.adapters.trl.trainer import MethodGRPOTrainer
from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.monitor import Reading
from vcpo_bench.errors import UsageError

SAVED_AS = "vcpo_bench_monitor"
"""Where a checkpoint's trainer state says that this run was stopped once."""

logger = logging.getLogger(__name__)


class WeightMonitor:
    """Reads the sequence weights current/behavior of every optimizer step, over all ranks, before any clipping.

    Behavior log-probabilities are those that vLLM reported, else those of the weights that sampled. Where the trainer
    keeps neither it trains on policy, and every weight is 1. Each update adds to the log `monitor/ess`,
    `monitor/max_share`, `monitor/pareto_k`, `monitor/log_weight_q05` to `q95`, and the other gauges of
    `analysis.monitoring.monitor.Reading`. An alarm is a warning of Python's logging, with its measured error rates. So
    is what fails in here: nothing is read any more, and the run goes on.

    Args:
        trainer: A `GRPOTrainer`, also one of `with_method`.
        calibrations: Detectors, or the file that `vcpo-bench lab calibrate` wrote; None: those of the package.
        stop_on_alarm: Save a checkpoint and end the run after the first alarm. A run that is resumed from that
            checkpoint is not stopped again. Otherwise an alarm changes nothing.

    Raises:
        UsageError: The trainer is no `GRPOTrainer`, or the calibrations cannot be read.
    """

    def __init__(
        self,
        trainer: Any,
        *,
        calibrations: Sequence[Calibration] | str | Path | None = None,
        stop_on_alarm: bool = False,
    ) -> None:
        self._trainer, self._stop = trainer, stop_on_alarm
        self._gauges = WeightGauges(calibrations)
        self._heard: list[Tensor] = []
        self._inputs: Any = None
        self._alarmed = self._stopped = False
        self.reading: Reading | None = None
        self.seconds = 0.0
        if not isinstance(trainer, MethodGRPOTrainer):
            self._listen()

    # -- what the trainer computes anyway ----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Hear the log-probabilities that the loss of a plain trainer works with."""
        trainer = self._trainer
        if not hasattr(trainer, "_compute_loss"):
            raise UsageError(
                f"MonitorCallback hears the loss of a GRPOTrainer, and {type(trainer).__name__} has another"
            )
        compute_loss, score = trainer._compute_loss, trainer._get_per_token_logps_and_entropies

        def heard_loss(model: Any, inputs: Any) -> Any:
            self._inputs = inputs if trainer.model.training else None
            try:
                return compute_loss(model, inputs)
            finally:
                self._inputs = None

        def heard_score(*args: Any, **kwargs: Any) -> Any:
            scores = score(*args, **kwargs)
            if self._inputs is not None:
                self._gauges.attempt(lambda: self._hear(self._inputs, scores))
            return scores

        trainer._compute_loss, trainer._get_per_token_logps_and_entropies = heard_loss, heard_score

    def _hear(self, inputs: Any, scores: Any) -> None:
        """Keep what `by_row` says of one micro-batch."""
        start = time.perf_counter()
        logp = scores[0].detach().float()
        behavior = inputs.get("sampling_per_token_logps", inputs.get("old_per_token_logps"))
        if behavior is None:
            behavior = logp
        self._heard.append(by_row(torch.where(torch.isnan(behavior), logp, behavior), logp, loss_mask(inputs)))
        self.seconds += time.perf_counter() - start

    def _rows(self) -> Tensor:
        """`[n, 3]` the same of the whole optimizer step, over all ranks."""
        trainer = self._trainer
        if isinstance(trainer, MethodGRPOTrainer):
            assert trainer.rows is not None
            return by_row(trainer.rows.behavior_logp, trainer.rows.logp, trainer.rows.mask)
        if not self._heard:
            raise UsageError(f"{type(trainer).__name__} computes its loss without GRPOTrainer._compute_loss")
        own = torch.cat(self._heard)
        self._heard = []
        everyone: Tensor = trainer.accelerator.gather(own)
        return everyone

    # -- events of the trainer ---------------------------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """A run that was stopped here once is not stopped again."""
        self._stopped = bool(state.stateful_callbacks.get(SAVED_AS))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Read the gauges of this update and put them into the log."""
        self._gauges.attempt(self._read)

    def _read(self) -> None:
        start = time.perf_counter()
        metrics = self._trainer._metrics["train"]
        entropy = _newest(metrics, "entropy", max(len(self._heard), 1))
        self.reading, numbers = self._gauges.read(self._rows(), _newest(metrics, "reward"), entropy)
        for name, value in numbers.items():
            metrics[name].append(value)
        self._report(self.reading)
        self.seconds += time.perf_counter() - start

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Save and stop after the first alarm, where that was asked for."""
        if self._stop and self._alarmed and not self._stopped:
            self._stopped = control.should_save = control.should_training_stop = True
            state.stateful_callbacks[SAVED_AS] = {"stopped_at": state.global_step}

    def _report(self, reading: Reading) -> None:
        """Say every alarm when it begins, on the main process."""
        for alarm in self._gauges.begun(reading):
            if self._trainer.accelerator.is_main_process:
                logger.warning("alarm at update %d: %s", self._trainer.state.global_step, alarm)
        self._alarmed |= bool(reading.alarms)


def _newest(metrics: Any, name: str, count: int = 1) -> float | None:
    """The mean of the newest values of a metric of the trainer, or None; of some there is one per micro-batch."""
    values = (metrics.get(name) or [])[-count:]
    return sum(map(float, values)) / len(values) if values else None


@cache
def callback_class() -> Any:
    """`WeightMonitor` as a callback of the installed transformers."""
    from transformers import TrainerCallback

    return type("MonitorCallback", (WeightMonitor, TrainerCallback), {"__doc__": WeightMonitor.__doc__})
