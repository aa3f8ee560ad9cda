"""Row-local methods as the custom loss of prime-rl: `[trainer.loss] type = "custom"`, `import_path` to `loss` here.

prime-rl calls the function for one sequence at a time, sums what it returns over all ranks, and divides by the number
of tokens that carry loss.
"""

from __future__ import annotations

from typing import Any

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.row_local import bind, loss_of
from vcpo_bench.lazy_torch import torch

HOOK = Hook(trainer="prime-rl", divisor=Divisor.TOKENS)

__all__ = ["HOOK", "loss"]


def loss(inputs: Any, method: str) -> Any:
    """The loss of one sequence.

    Args:
        inputs: prime-rl's `LossInputs`: `trainer_logprobs`, `inference_logprobs`, `advantages`, `loss_mask`, each
            `[T]`, and `loss_weights`, `[T]` or None.
        method: A method expression with `+token-mean`, from `[trainer.loss.kwargs]`.

    Returns:
        prime-rl's `LossOutputs`.

    Raises:
        UsageError: The method would not be exact there; at the first sequence, hence before the first step.
    """
    from prime_rl.trainer.rl.loss import LossOutputs

    weighed = bind(method, HOOK).weigh(
        logp=inputs.trainer_logprobs[None],
        behavior_logp=inputs.inference_logprobs[None],
        advantage=inputs.advantages[None],
        mask=inputs.loss_mask[None],
    )
    if inputs.loss_weights is not None:  # of prime-rl's component, a factor on the loss of each token
        weighed = weighed._replace(coefficients=weighed.coefficients * inputs.loss_weights[None])
    device = inputs.trainer_logprobs.device
    metrics = {f"vcpo_bench/{name}": torch.tensor(value, device=device) for name, value in weighed.metrics.items()}
    return LossOutputs(loss=loss_of(weighed, inputs.trainer_logprobs[None]), metrics=metrics)
