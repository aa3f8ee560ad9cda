"""The evidence of E cells at one update, and the batch of any of them that one method is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.bench.stack.scoring import StackedScores
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch


def together(tensors: Sequence[Tensor], device: torch.device) -> Tensor:
    """`[E, ...]` one tensor of each cell, on a device."""
    return torch.stack(list(tensors)).to(device)


@dataclass(frozen=True)
class StackedEvidence:
    """What the methods of E cells may know. Every field but `now` is on the policy's device.

    Attributes:
        logp: `[E, P, G, T]` under the current policies.
        entropy: `[E, P, G, T]` of the current policies, in nats.
        sum_pi_sq: `[E, P, G, T]`; None where no method asks for it.
        behavior_logp: `[E, P, G, T]`.
        mask: Bool `[E, P, G, T]`.
        reward: `[E, P, G]`.
        version: int64 `[E, P, G, T]`.
        proximal_logp: `[E, P, G, T]`; None where no batch carries it.
        reference_logp: `[E, P, G, T]`; None where no method asks for it.
        score_norm_sq: `[E, P, G]`; None where no method asks for it.
        now: int64 `[E]` updates that each cell has made, in main memory.
    """

    logp: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor | None
    behavior_logp: Tensor
    mask: Tensor
    reward: Tensor
    version: Tensor
    proximal_logp: Tensor | None
    reference_logp: Tensor | None
    score_norm_sq: Tensor | None
    now: Tensor

    def of(self, cells: Sequence[int], needs: frozenset[str], state: Mapping[str, Tensor]) -> Batch:
        """The batch of some cells: with their leading axis, or without one for a single cell.

        Args:
            cells: Which.
            needs: Optional fields that their method asks for.
            state: What it returned last time, with the same leading axis.
        """
        mask = self._take(self.mask, cells)
        return Batch(
            logp=self._take(self.logp, cells),
            behavior_logp=self._take(self.behavior_logp, cells),
            mask=mask,
            valid=torch.ones(mask.shape[:-1], dtype=torch.bool, device=mask.device),
            reward=self._take(self.reward, cells),
            version=self._take(self.version, cells),
            now=int(self.now[cells[0]]) if len(cells) == 1 else self.now[list(cells)].to(mask.device),
            state=state,
            **{name: self._optional(name, cells) for name in needs & _OPTIONAL},
        )

    def _optional(self, name: str, cells: Sequence[int]) -> Tensor | None:
        value: Tensor | None = getattr(self, name)
        return None if value is None else self._take(value, cells)

    def _take(self, value: Tensor, cells: Sequence[int]) -> Tensor:
        if len(cells) == 1:
            return value[cells[0]]
        return value if len(cells) == len(value) else value[list(cells)]


_OPTIONAL = frozenset({"entropy", "sum_pi_sq", "proximal_logp", "reference_logp", "score_norm_sq"})


def gather_evidence(
    batches: Sequence[Trajectories],
    nows: Sequence[int],
    scores: StackedScores,
    needs: frozenset[str],
    reference_logp: Tensor | None = None,
    score_norm_sq: Tensor | None = None,
) -> StackedEvidence:
    """The evidence of one update of every cell.

    Args:
        batches: What each cell consumes.
        nows: Updates that each has made.
        scores: Under the current policies.
        needs: Optional fields that any method asks for.
        reference_logp: `[E, B, T]` under the reference policies.
        score_norm_sq: `[E, B]` squared score norms.
    """
    device = scores.logp.device
    shape = (len(batches), *batches[0].mask.shape)
    proximal = [batch.proximal_logp for batch in batches if batch.proximal_logp is not None]
    return StackedEvidence(
        logp=scores.logp.detach().view(shape),
        entropy=scores.entropy().view(shape),
        sum_pi_sq=scores.sum_pi_sq().view(shape) if "sum_pi_sq" in needs else None,
        behavior_logp=together([batch.behavior_logp for batch in batches], device),
        mask=scores.mask.view(shape),
        reward=together([batch.reward for batch in batches], device),
        version=together([batch.version for batch in batches], device),
        proximal_logp=together(proximal, device) if len(proximal) == len(batches) else None,
        reference_logp=None if reference_logp is None else reference_logp.view(shape),
        score_norm_sq=None if score_norm_sq is None else score_norm_sq.view(shape[:3]),
        now=torch.tensor(nows),
    )
