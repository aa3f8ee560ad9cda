"""From the rows of an optimizer step, on all ranks, to one coefficient per token.

Every method is a map to coefficients c with gradient `-sum c d log pi`. They are computed once per optimizer step,
over all rows of all ranks. The trainer then minimizes `-sum c log pi`, micro-batch by micro-batch, and its adapter
undoes the trainer's own averaging. That is exact for methods of every scope (`locality.Scope`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update


@dataclass(frozen=True, kw_only=True)
class StepRows:
    """Rows (responses) of one optimizer step, in any order.

    Attributes:
        logp: `[B, T]` log-probability of each token under the current policy, detached.
        behavior_logp: `[B, T]` the same under the policy that sampled it.
        mask: `[B, T]` bool, True where a token carries loss.
        reward: `[B]`; NaN: it could not be judged, and the row is left out of everything.
        group: `[B]` int64, equal for the rows of one prompt, unique among all prompts of the step.
        version: `[B]` int64, optimizer updates of the weights that sampled the row.
        proximal_logp: `[B, T]`; this and the following only where the method needs them.
        reference_logp: `[B, T]`.
        entropy: `[B, T]`, nats.
        sum_pi_sq: `[B, T]`.
        score_norm_sq: `[B]`.
    """

    logp: Tensor
    behavior_logp: Tensor
    mask: Tensor
    reward: Tensor
    group: Tensor
    version: Tensor
    proximal_logp: Tensor | None = None
    reference_logp: Tensor | None = None
    entropy: Tensor | None = None
    sum_pi_sq: Tensor | None = None
    score_norm_sq: Tensor | None = None

    def __len__(self) -> int:
        return len(self.reward)

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are given."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def log_weights(self) -> Tensor:
        """`[B]` log of the sequence weight current over behavior, nats; 0 for a row without tokens."""
        return torch.where(self.mask, self.logp.float() - self.behavior_logp.float(), 0.0).sum(-1)

    def padded(self, width: int) -> StepRows:
        """The same rows with T = `width`: masked tokens are added, or left out, at the end.

        Raises:
            UsageError: A token that carries loss would be left out.
        """
        missing = width - self.logp.shape[1]
        if missing < 0 and bool(self.mask[:, width:].any()):
            longest = int((self.mask * torch.arange(1, self.mask.shape[1] + 1, device=self.mask.device)).max())
            raise UsageError(f"a response has {longest} tokens, more than the longest allowed, {width}")
        return replace(
            self,
            **{name: pad(value, (0, missing)) for name, value in self.tensors().items() if value.dim() == 2},
        )


def join(parts: Sequence[StepRows], width: int) -> StepRows:
    """The rows of several micro-batches, padded to `width` tokens, in their order."""
    padded = [part.padded(width).tensors() for part in parts]
    return StepRows(**{name: torch.cat([part[name] for part in padded]) for name in padded[0]})


def gather(rows: StepRows) -> tuple[StepRows, slice]:
    """The rows of all ranks in the order of ranks, and where this rank's own are; ranks may hold different numbers.

    The ranks must call it together, with the same fields and the same T. Without a process group the rows come back.
    """
    group = torch.distributed
    if not (group.is_available() and group.is_initialized()) or group.get_world_size() == 1:
        return rows, slice(0, len(rows))
    counts = [torch.zeros((), dtype=torch.int64, device=rows.reward.device) for _ in range(group.get_world_size())]
    group.all_gather(counts, torch.tensor(len(rows), device=rows.reward.device))
    numbers = [int(count) for count in counts]
    start = sum(numbers[: group.get_rank()])
    everyone = {name: _gather(value, numbers) for name, value in rows.tensors().items()}
    return StepRows(**everyone), slice(start, start + len(rows))


def _gather(value: Tensor, numbers: Sequence[int]) -> Tensor:
    """`[sum of numbers, ...]` one field of all ranks."""
    narrow = value.to(torch.uint8) if value.dtype == torch.bool else value
    filled = narrow.new_zeros((max(numbers), *narrow.shape[1:]))
    filled[: len(narrow)] = narrow
    parts = [torch.empty_like(filled) for _ in numbers]
    torch.distributed.all_gather(parts, filled)
    return torch.cat([part[:number] for part, number in zip(parts, numbers, strict=True)]).to(value.dtype)


@dataclass(frozen=True)
class Decision:
    """What one optimizer step does.

    Attributes:
        coefficients: `[B, T]` in the order of the rows: the loss is `-sum coefficients * logp`. 0 at masked tokens.
        entropy_coefficients: `[B, T]`: the loss has a further term `-sum entropy_coefficients * entropy`; None: none.
        step_scale: Multiplier of the learning rate of this step.
        metrics: `share_clipped`, `share_masked`, `ess_ratio`, `ess_ratio_used`, as in `methods.Update`.
        skipped: Name of the field that is not finite, so that this step must change nothing; empty for nearly all.
    """

    coefficients: Tensor
    entropy_coefficients: Tensor | None
    step_scale: float
    metrics: Mapping[str, float]
    skipped: str = ""


class Coefficients:
    """A method at work in a training run: it decides each optimizer step and keeps the method's state.

    Args:
        method: The method.
        width: Longest response, tokens. Rows are padded to it, since some aggregations divide by it.
    """

    def __init__(self, method: Method, width: int) -> None:
        self.method, self.width = method, width
        self.state: Mapping[str, Tensor] = {}

    def decide(self, rows: StepRows, now: int) -> Decision:
        """The decision on one step; the same on every rank that passes the same rows.

        Args:
            rows: All rows of the step, of all ranks.
            now: Optimizer updates applied before this one.

        Raises:
            MethodError: The rows lack a field that the method needs, or do not fit together.
        """
        judged = ~torch.isnan(rows.reward)
        if not bool(judged.any()):
            return _nothing(rows, "reward")
        batch = self._batch(rows, judged, now)
        try:
            update = self.method(batch)
        except NonFiniteEvidence as error:
            return _nothing(rows, error.field)
        if not bool(torch.isfinite(update.coefficients).all()):
            return _nothing(rows, "coefficients")
        if not bool(torch.isfinite(update.step_scale)):
            return _nothing(rows, "step_scale")
        self.state = update.state
        return _decision(rows, judged, batch, update)

    def _batch(self, rows: StepRows, judged: Tensor, now: int) -> Batch:
        given = {name: value[judged] for name, value in rows.padded(self.width).tensors().items()}
        given["version"] = given["version"].unsqueeze(-1).expand_as(given["logp"])
        for name, value in given.items():
            given[name] = value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
        return Batch.from_rows(**given, now=now, state=self.state)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {"method": self.method.canonical, "state": dict(self.state)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            UsageError: It is the state of another method.
        """
        if saved["method"] != self.method.canonical:
            raise UsageError(
                f"the checkpoint was written with {saved['method']}, this run uses {self.method.canonical}: "
                "resume with the same method, or start from the saved weights without resuming"
            )
        self.state = saved["state"]


def _nothing(rows: StepRows, field: str) -> Decision:
    """A step that changes nothing because `field` is not finite; the method's state stays as it was."""
    return Decision(torch.zeros_like(rows.logp, dtype=torch.float32), None, 1.0, {}, field)


def _decision(rows: StepRows, judged: Tensor, batch: Batch, update: Update) -> Decision:
    def spread(values: Tensor) -> Tensor:
        """`[B, T]` in the order and width of the rows."""
        known = batch.to_rows(values)[:, : rows.logp.shape[1]]
        everywhere = known.new_zeros(rows.logp.shape)
        everywhere[judged, : known.shape[1]] = known
        return everywhere

    entropy = update.entropy_coefficients
    return Decision(
        coefficients=spread(update.coefficients),
        entropy_coefficients=None if entropy is None else spread(entropy),
        step_scale=float(update.step_scale),
        metrics={name: float(value) for name, value in update.metrics.items()},
    )
