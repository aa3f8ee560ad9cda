"""sgd: gradient descent, with momentum where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import torch
from vcpo_bench.naming.parameters import flag, number

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy


@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent; its step is proportional to the gradient, which AdamW's is not.

    Attributes:
        momentum: Decay of the running sum of gradients; 0: none. A sum of constant gradients grows to
            1 / (1 - momentum) of them.
        nesterov: Whether the step looks one gradient ahead.

    Raises:
        UsageError: `nesterov` without momentum.
    """

    name = "sgd"
    summary = "gradient descent; its rate is not AdamW's, so give one with --lr"
    momentum: float = number(0.0, minimum=0.0, below=1.0)
    nesterov: bool = flag(False)

    def __post_init__(self) -> None:
        """Refuse what PyTorch refuses."""
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise UsageError("sgd(nesterov=on) needs momentum; write sgd(momentum=0.9,nesterov=on)")

    def build(self, policy: Policy, lr: float, weight_decay: float) -> torch.optim.SGD:
        """See `Optimizer.build`; the decay is decoupled, while that of `torch.optim.SGD` goes through the momentum."""
        made = torch.optim.SGD(policy.trainable(), lr=lr, momentum=self.momentum, nesterov=self.nesterov)
        if weight_decay:
            made.register_step_pre_hook(lambda optimizer, *_: _shrink(optimizer, weight_decay))
        return made

    @property
    def moments(self) -> int:
        """The momentum."""
        return 1 if self.momentum else 0


def _shrink(optimizer: torch.optim.Optimizer, weight_decay: float) -> None:
    groups: list[dict[str, Any]] = optimizer.param_groups
    with torch.no_grad():
        for group in groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * weight_decay)
