"""The weights of past versions, for methods that ask how far the policy has moved since data were sampled."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.training.gradients import put_gradient
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Method


class PastWeights:
    """Keeps the trained weights of the last versions in main memory, one vector each.

    Args:
        policy: The policy that is trained.
        fields: What is asked for, `parameter_distance` or `update_norm`.
        largest_lag: Most updates between sampling and use; older versions are forgotten. None: none is.
    """

    def __init__(self, policy: Policy, fields: Collection[str], largest_lag: int | None) -> None:
        self._policy, self._fields = policy, frozenset(fields)
        self._kept = largest_lag if "parameter_distance" in self._fields else 0
        self._versions: dict[int, Tensor] = {}
        self._update_norm = 0.0

    @classmethod
    def wanted_by(cls, method: Method, policy: Policy, largest_lag: int | None) -> PastWeights | None:
        """What a method needs of them, or None for nearly all methods."""
        return cls(policy, method.measures_drift, largest_lag) if method.measures_drift else None

    def begin(self, now: int) -> None:
        """Keep the weights of version `now`, before its update, and forget those that no data can be of any more."""
        self._versions[now] = self._flat()
        if self._kept is not None:
            self._versions = {v: weights for v, weights in self._versions.items() if v >= now - self._kept}

    def end(self, now: int, scale: float) -> None:
        """Measure the update of version `now`, applied at this step scale; one of scale 0 says nothing."""
        if scale > 0 and "update_norm" in self._fields:
            self._update_norm = _distance(self._flat(), self._versions[now]) / scale

    def evidence(self, batch: Trajectories, now: int) -> dict[str, float | Tensor]:
        """The fields of the evidence of update `now`."""
        found: dict[str, float | Tensor] = {}
        if "update_norm" in self._fields:
            found["update_norm"] = self._update_norm
        if "parameter_distance" in self._fields:
            oldest = _versions(batch, now)
            far = {v: _distance(self._versions[now], self._of(v)) for v in set(oldest.flatten().tolist())}
            found["parameter_distance"] = torch.tensor([far[v] for v in oldest.flatten().tolist()]).view_as(oldest)
        return found

    def drift(self, batch: Trajectories, now: int) -> Tensor:
        """`[D]` weights of version `now` minus the mean over rows of those that sampled their oldest tokens."""
        versions, counts = torch.unique(_versions(batch, now), return_counts=True)
        mean = torch.zeros_like(self._versions[now])
        for version, count in zip(versions.tolist(), (counts / counts.sum()).tolist(), strict=True):
            mean += count * self._of(version)
        return self._versions[now] - mean

    def compensate(self, correct: Callable[[Tensor, Tensor], Tensor], batch: Trajectories, now: int) -> None:
        """Correct the gradient in `.grad` for the drift of the weights since the batch was sampled.

        Args:
            correct: From gradient and drift, `[D]` each, to the new gradient (`Method.compensate`).
            batch: What the update consumes.
            now: Number of the update.
        """
        trained = self._policy.trainable()
        pieces = torch.split(self.drift(batch, now).to(self._policy.device), [p.numel() for p in trained])
        moved = {p: (p.grad.flatten(), drift) for p, drift in zip(trained, pieces, strict=True) if p.grad is not None}
        gradient, drift = (torch.cat(parts) for parts in zip(*moved.values(), strict=True))
        put_gradient(list(moved), correct(gradient, drift))

    def tensors(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        found = {f"version/{version}": weights for version, weights in self._versions.items()}
        return found | {"update_norm": torch.tensor(self._update_norm, dtype=torch.float64)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore what `tensors` returned; nothing for the state of a run whose method kept none."""
        kept = {name: tensor for name, tensor in tensors.items() if name.startswith("version/")}
        self._versions = {int(name.removeprefix("version/")): tensor for name, tensor in kept.items()}
        self._update_norm = float(tensors["update_norm"]) if "update_norm" in tensors else 0.0

    def _of(self, version: int) -> Tensor:
        if version not in self._versions:
            raise AssertionError(f"data of version {version}, whose weights are not kept: older than the regime's lag")
        return self._versions[version]

    def _flat(self) -> Tensor:
        return torch.cat([parameter.detach().flatten().float().cpu() for parameter in self._policy.trainable()])


def _versions(batch: Trajectories, now: int) -> Tensor:
    """`[P, G]` version of the oldest token of each row; `now` for rows without tokens."""
    return torch.where(batch.mask.any(-1), batch.oldest(), now)


def _distance(one: Tensor, other: Tensor) -> float:
    return float(torch.linalg.vector_norm(one - other, dtype=torch.float64))
