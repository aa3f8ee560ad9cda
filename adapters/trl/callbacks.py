"""The callback of a trainer with a method."""

from __future__ import annotations

from typing import Any


class AroundOptimizerStep:
    """Calls a trainer's `OptimizerStep`."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Called by every `train()`, also by a second one."""
        if not state.global_step:
            self._trainer.forget_samples()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **others: Any) -> None:
        """Called after clipping."""
        trainer = self._trainer
        trainer.optimizer_step.before(optimizer, trainer.decision, trainer.accelerator.scaler)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **others: Any) -> None:
        """Called before the scheduler looks at the learning rates."""
        self._trainer.optimizer_step.after(optimizer)


def step_callback(trainer: Any) -> Any:
    """The same as a callback of the installed transformers."""
    from transformers import TrainerCallback

    return type("AroundOptimizerStep", (AroundOptimizerStep, TrainerCallback), {})(trainer)
