"""muon: orthogonalized momentum for the matrices inside the network, AdamW for everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.optimizers.adamw import ADAMW
from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.lazy_torch import torch
from vcpo_bench.naming.parameters import choice, number

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy


@dataclass(frozen=True, kw_only=True)
class Muon(Optimizer):
    """Muon as `torch.optim.Muon` has it, with Nesterov momentum and five Newton-Schulz iterations in bfloat16.

    Embeddings, the output head, biases and gains of norms are not matrices that map one hidden space to another; they
    are trained by AdamW with its defaults, at the same rate.

    Attributes:
        momentum: Decay of the running mean of gradients.
        scale: `rms`: the step of an A x B matrix is multiplied by 0.2 sqrt(max(A, B)), which gives it the size of
            AdamW's, so that one rate serves both (arXiv 2502.16982); `spectral`: by sqrt(max(1, A/B)), as first
            published, which wants a larger rate.
    """

    name = "muon"
    summary = "orthogonalized momentum for hidden matrices, AdamW for the rest"
    momentum: float = number(0.95, minimum=0.0, below=1.0)
    scale: str = choice("rms", "spectral")

    def build(self, policy: Policy, lr: float, weight_decay: float) -> torch.optim.Optimizer:
        """See `Optimizer.build`."""
        from vcpo_bench.bench.side_by_side import SideBySide

        hidden = hidden_matrices(policy)
        others = ADAMW.build(policy, lr, weight_decay)
        chosen = {id(parameter) for parameter in hidden}
        others.param_groups[0]["params"] = [one for one in policy.trainable() if id(one) not in chosen]
        muon = torch.optim.Muon(
            hidden,
            lr=lr,
            weight_decay=weight_decay,
            momentum=self.momentum,
            adjust_lr_fn="match_rms_adamw" if self.scale == "rms" else "original",
        )
        return SideBySide([muon, others])

    @property
    def moments(self) -> int:
        """Those of AdamW for what it trains; one of the others."""
        return 2


def hidden_matrices(policy: Policy) -> list[torch.nn.Parameter]:
    """The trained matrices of a policy that are no embedding and not of its output head."""
    outer = [policy.output_head(), *(module for module in policy.modules() if isinstance(module, torch.nn.Embedding))]
    kept_out = {id(parameter) for module in outer for parameter in module.parameters()}
    return [one for one in policy.trainable() if one.ndim == 2 and id(one) not in kept_out]
