"""verl's trainer with the raw importance weights in its log, whatever its loss."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch

from vcpo_bench.adapters.coefficients import StepRows
from vcpo_bench.adapters.gauges import WeightGauges, by_row
from vcpo_bench.adapters.verl import refusals
from vcpo_bench.adapters.verl.rows import read_rows

logger = logging.getLogger(__name__)


class MonitoredTrainer:
    """Stands before a `PPOTrainer` of verl.

    Each step logs `monitor/ess`, `monitor/max_share` (share of the largest trajectory), `monitor/pareto_k`,
    `monitor/log_weight_q05` to `q95` and the other gauges: current policy over the policy that sampled, by sequence,
    before any clipping, over all rows. An alarm is a warning of Python's logging and changes nothing. So is what fails
    while looking: nothing is looked at any more, and the run goes on.

    Class attributes:
        base_mode: Mode of verl that is extended.
    """

    base_mode: ClassVar[str]
    config: Any
    global_steps: int

    def __init__(self, config: Any) -> None:
        from omegaconf import open_dict

        refusals.check(config)
        with open_dict(config):
            config.trainer.v1.trainer_mode = self.base_mode  # verl asks for its own modes by name
        parent: Any = super()
        parent.__init__(config)
        self._gauges = WeightGauges()

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Reads the gauges, then verl's advantage."""
        parent: Any = super()
        bypassing = refusals.bypasses(self.config) and not self._gauges.off
        self._gauges.attempt(partial(self._look, batch, metrics, bypassing))
        if bypassing:
            parent._compute_old_log_prob(batch, {})  # the rollout's log-probabilities again
        return parent._compute_advantage(batch, metrics)

    def _look(self, batch: Any, metrics: dict[str, Any], bypassing: bool) -> None:
        parent: Any = super()
        if bypassing:
            with _without_bypass(self.config):  # else the current policy is nowhere to be read
                parent._compute_old_log_prob(batch, {})
        self._watch(read_rows(batch, (), 1)[0], metrics)

    def _watch(self, rows: StepRows, metrics: dict[str, Any]) -> None:
        """Put the gauges of one optimizer step into the log."""
        judged = ~torch.isnan(rows.reward)
        if not bool(judged.any()):
            return
        evidence = by_row(rows.behavior_logp, rows.logp, rows.mask)[judged]
        reading, numbers = self._gauges.read(evidence, float(rows.reward[judged].mean()), _entropy(rows))
        metrics.update(numbers)
        for alarm in self._gauges.begun(reading):
            logger.warning("alarm at step %d: %s", self.global_steps, alarm)

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save_checkpoint(self) -> None:
        """With an exact lag, what waits for its step is saved, too; verl does so in its asynchronous modes only."""
        if self._lags():
            import transfer_queue as tq

            tq.save_checkpoint(self._folder() / "transfer_queue", metadata={"global_steps": self.global_steps})
        parent: Any = super()
        parent._save_checkpoint()

    def _load_checkpoint(self) -> None:
        parent: Any = super()
        parent._load_checkpoint()
        if self.global_steps and self._lags():
            import transfer_queue as tq

            tq.load_checkpoint(self._folder(resuming=True) / "transfer_queue")

    def _lags(self) -> bool:
        return refusals.uses_lag(self.config) and self.base_mode == "sync"

    def _folder(self, resuming: bool = False) -> Path:
        """Of the checkpoint of this step."""
        trainer = self.config.trainer
        if resuming and trainer.resume_mode == "resume_path":
            return Path(trainer.resume_from_path)
        return Path(trainer.default_local_dir) / f"global_step_{self.global_steps}"


def _entropy(rows: StepRows) -> float | None:
    """Mean over tokens, nats."""
    if rows.entropy is None:
        return None
    return float(torch.where(rows.mask, rows.entropy, 0.0).sum() / rows.mask.sum().clamp(min=1))


@contextmanager
def _without_bypass(config: Any) -> Iterator[None]:
    """Verl computes the current policy's log-probabilities inside."""
    correction = config.algorithm.rollout_correction
    correction.bypass_mode = False
    try:
        yield
    finally:
        correction.bypass_mode = True
