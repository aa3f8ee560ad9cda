"""The actor's worker: a linear loss, and an optimizer step of the size that the driver decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.verl.names import COEFFICIENTS, ENTROPY_COEFFICIENTS, LAST, SKIP, STEP_SCALE
from vcpo_bench.adapters.verl.norms import ScoringWithNorms


class ScaledStep:
    """The optimizer step of an engine with a scaled learning rate, or none at all.

    Args:
        engine: An engine of verl with an `optimizer`.

    Attributes:
        scale: Multiplier of the learning rate of the next step.
        skip: Leave the next step out: neither weights nor moments change.
    """

    def __init__(self, engine: Any) -> None:
        self._engine, self._step = engine, engine.optimizer_step
        self.scale, self.skip = 1.0, False

    def __call__(self) -> Any:
        """The norm of the gradient before clipping, as the engine reports it."""
        if self.skip:
            return 0.0
        groups = self._engine.optimizer.param_groups
        rates = [group["lr"] for group in groups]
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * self.scale
        try:
            return self._step()
        finally:
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate


class MethodWorker:
    """Stands before verl's `TrainingWorker`."""

    engine: Any

    def reset(self) -> None:
        """Build the engine."""
        parent: Any = super()
        parent.reset()
        self._scaled_step = ScaledStep(self.engine)
        self.engine.optimizer_step = self._scaled_step
        self.engine.infer_batch = ScoringWithNorms(self.engine)

    def set_loss_fn(self, loss_fn: Callable[..., Any]) -> None:
        """Put the linear loss in place of verl's."""
        parent: Any = super()
        parent.set_loss_fn(linear_loss)

    def train_batch(self, data: Any) -> Any:
        """One optimizer step, which the driver has decided on."""
        from verl.utils import tensordict_utils as tu

        parent: Any = super()
        self._scaled_step.scale = float(tu.get(data, STEP_SCALE))
        self._scaled_step.skip = bool(tu.get(data, SKIP))
        if not tu.get(data, LAST):
            tu.assign_non_tensor(data, update_lr_scheduler=False)
        return parent.train_batch(data)


def linear_loss(model_output: Any, data: Any, dp_group: Any = None) -> tuple[Tensor, dict[str, Any]]:
    """`-sum c log pi` of one micro-batch; verl averages over the data-parallel ranks, so their number is multiplied.

    Args:
        model_output: Nested `log_probs`, and `entropy` where it is asked for.
        data: The micro-batch with its coefficients.
        dp_group: Not used.
    """
    from verl.utils.metric import AggregationType, Metric
    from verl.workers.utils.padding import no_padding_2_padding

    total: Tensor = _dot(data[COEFFICIENTS], no_padding_2_padding(model_output["log_probs"], data))
    if ENTROPY_COEFFICIENTS in data:
        total = total + _dot(data[ENTROPY_COEFFICIENTS], no_padding_2_padding(model_output["entropy"], data))
    loss = -total * data["dp_size"]
    return loss, {"actor/pg_loss": Metric(value=loss.detach(), aggregation=AggregationType.SUM)}


def _dot(nested: Tensor, values: Tensor) -> Tensor:
    """A token without a coefficient counts nothing, whatever its value."""
    coefficients = nested.to_padded_tensor(0.0)
    return torch.where(coefficients != 0, coefficients * values, 0.0).sum()


@cache
def training_worker_class() -> Any:
    """Verl's `TrainingWorker` with a method."""
    from verl.workers.engine_workers import TrainingWorker

    return type("MethodTrainingWorker", (MethodWorker, TrainingWorker), {})


@cache
def actor_worker_class() -> Any:
    """Verl's `ActorRolloutRefWorker` whose actor carries a method."""
    from verl.workers.engine_workers import ActorRolloutRefWorker

    inside = {"actor_worker_cls": training_worker_class()}
    return type("MethodActorRolloutRefWorker", (ActorRolloutRefWorker,), inside)
