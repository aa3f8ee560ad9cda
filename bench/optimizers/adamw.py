"""adamw: AdamW, with moments that can be forgotten at intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.lazy_torch import torch
from vcpo_bench.naming.parameters import integer, number

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy


@dataclass(frozen=True, kw_only=True)
class AdamW(Optimizer):
    """AdamW (arXiv 1711.05101), PyTorch's fused kernel.

    Attributes:
        beta1: Decay of the first moment.
        beta2: Decay of the second moment. A shorter memory (0.98) notices sooner that gradients have grown.
        eps: Added to the root of the second moment.
        reset: Steps after which both moments and their bias correction start anew (arXiv 2306.17833); 0: never.
            The second moment alone cannot: a weight that has no gradient at that step would move by its first moment
            divided by `eps`.
    """

    name = "adamw"
    summary = "AdamW; reset=N forgets its moments every N steps"
    bare_value = False
    beta1: float = number(0.9, minimum=0.0, below=1.0)
    beta2: float = number(0.999, minimum=0.0, below=1.0)
    eps: float = number(1e-8, above=0.0, below=math.inf)
    reset: int = integer(0, minimum=0)

    def build(self, policy: Policy, lr: float, weight_decay: float) -> torch.optim.AdamW:
        """See `Optimizer.build`."""
        from vcpo_bench.bench.plain_adamw import PlainAdamW

        made = PlainAdamW(
            policy.trainable(),
            lr=lr,
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            weight_decay=weight_decay,
            fused=True,
        )
        if self.reset:
            made.register_step_pre_hook(self._forget)
        return made

    @property
    def moments(self) -> int:
        """Both."""
        return 2

    def _forget(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Before a step: drop the state of parameters that have made `reset` steps with it.

        The count is part of the state, so that a run that is resumed forgets at the same steps.
        """
        for parameter, values in list(optimizer.state.items()):
            if values["step"] >= self.reset:
                del optimizer.state[parameter]


ADAMW = AdamW()
"""What trains a cell unless it says otherwise."""
