"""Every method inside TRL's `GRPOTrainer`, and a monitor for its log. TRL is imported when one of them is used.

from vcpo_bench.adapters.trl import with_method

Trainer = with_method(GRPOTrainer, "vcpo")
"""

from __future__ import annotations

from typing import Any

from vcpo_bench.methods import Method

__all__ = ["MonitorCallback", "with_method"]


def with_method(trainer_class: type, method: str | Method, lag: str = "fifo(0)") -> Any:
    """The same trainer with another method in place of its loss.

    Everything but the loss, the advantage and the averaging stays the trainer's: data, generation, rewards, optimizer,
    logs, checkpoints. What a configuration cannot carry out is refused when the trainer is made.

    Args:
        trainer_class: `trl.GRPOTrainer` or a subclass of it.
        method: A method expression such as `vcpo` or `clip(high=0.28)+ess`, or a method.
        lag: `fifo(k)`: update t trains on what the weights of update max(t - k, 0) sampled, exactly. The first k + 1
            batches come from the initial weights.

    Returns:
        A subclass of `trainer_class`, made with the same arguments.

    Raises:
        UsageError: The expression or the lag is wrong, or the class is another trainer.
    """
    from vcpo_bench.adapters.trl.build import build_trainer_class

    return build_trainer_class(trainer_class, method, lag)


def __getattr__(name: str) -> Any:
    if name != "MonitorCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vcpo_bench.adapters.trl.monitor import callback_class

    return callback_class()
