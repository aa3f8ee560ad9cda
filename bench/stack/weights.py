"""The weights of many tiny policies in one tensor per parameter, of which each policy's own are slices."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy


class StackedWeights:
    """E policies of one shape as tensors `[E, ...]`.

    The parameters of every policy become views of them: what changes the one changes the other, so a policy can still
    be saved, loaded, evaluated or trained alone.

    Args:
        policies: The policies, on one device.

    Attributes:
        config: Their shape.
        tensors: Name of a parameter to its values in all policies, `[E, *shape]`; leaves of the gradient.
    """

    def __init__(self, policies: Sequence[TinyPolicy]) -> None:
        self.config: PolicyConfig = policies[0].config
        self._parameters = [dict(policy.named_parameters()) for policy in policies]
        with torch.no_grad():
            self.tensors = {name: torch.stack([p[name].detach() for p in self._parameters]) for name in self.names}
        for name, stacked in self.tensors.items():
            for parameters, own in zip(self._parameters, stacked.unbind(), strict=True):
                parameters[name].data = own
            stacked.requires_grad_(self._parameters[0][name].requires_grad)

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in the order of a policy."""
        return list(self._parameters[0])

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(iter(self.tensors.values())).device

    def __len__(self) -> int:
        return len(self._parameters)

    def chosen(self, cells: Sequence[int]) -> dict[str, Tensor]:
        """The weights of some cells, without gradient: the tensors themselves where all are chosen, else copies."""
        if len(cells) == len(self):
            return {name: tensor.detach() for name, tensor in self.tensors.items()}
        index = torch.tensor(cells, device=self.device)
        return {name: tensor.detach().index_select(0, index) for name, tensor in self.tensors.items()}

    def clear_gradients(self) -> None:
        """Forget the gradients of the last update."""
        for tensor in self.tensors.values():
            tensor.grad = None

    def gradients(self) -> list[Tensor]:
        """The gradients `[E, *shape]`, in the order of the names."""
        return [grad for tensor in self.tensors.values() if (grad := tensor.grad) is not None]

    def share_gradient(self, cell: int) -> None:
        """Let the parameters of one policy show its part of the gradients as their own `.grad`."""
        for name, parameter in self._parameters[cell].items():
            grad = self.tensors[name].grad
            parameter.grad = None if grad is None else grad[cell]

    def take_gradient(self, cell: int) -> bool:
        """Copy what became of the `.grad` of one policy back; False where it has none left, and its part is then 0."""
        kept = False
        for name, parameter in self._parameters[cell].items():
            grad = self.tensors[name].grad
            assert grad is not None
            if parameter.grad is None:
                grad[cell] = 0.0
                continue
            kept = True
            grad[cell] = parameter.grad
        return kept
