"""Between verl's store of trajectories and the rows of an optimizer step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.coefficients import StepRows
from vcpo_bench.adapters.verl.names import PROXIMAL
from vcpo_bench.errors import UsageError

TOKEN_FIELDS = {
    "logp": "old_log_probs",
    "behavior_logp": "rollout_log_probs",
    "entropy": "entropy",
    "sum_pi_sq": "sum_pi_squared",
    "reference_logp": "ref_log_prob",
    "proximal_logp": PROXIMAL,
}
"""Fields of `StepRows` with one number per token, and what verl calls them."""
SCORE_NORM = "score_norm_sq"
"""Field of `StepRows` with one number per row, under the same name in verl."""
ALWAYS = ("logp", "behavior_logp", "entropy")


def read_rows(batch: Any, needs: Collection[str], updates_per_version: int) -> tuple[StepRows, Tensor]:
    """The rows of a batch in the order of its keys, and their nested response mask.

    A row that verl adds to fill up a batch has reward NaN, so that it counts nowhere.

    Args:
        batch: Keys and tags of the rows.
        needs: Optional fields that the method reads.
        updates_per_version: Optimizer updates from one version of the weights to the next.
    """
    import transfer_queue as tq

    fields = {name: field for name, field in TOKEN_FIELDS.items() if name in ALWAYS or name in needs}
    norms = [SCORE_NORM] if SCORE_NORM in needs else []
    data = tq.kv_batch_get(
        keys=batch.keys,
        partition_id=batch.partition_id,
        select_fields=["response_mask", "rm_scores", *fields.values(), *norms],
    )
    nested = data["response_mask"]
    mask = padded(nested).bool()
    reward = padded(data["rm_scores"]).float().sum(1)
    filling = torch.tensor([bool(tag.get("is_padding", False)) for tag in batch.tags])
    oldest = torch.tensor([int(tag["min_global_steps"]) for tag in batch.tags])
    tokens = {name: _as_wide(padded(data[field]), mask) for name, field in fields.items()}
    rows = StepRows(
        mask=mask,
        reward=reward.masked_fill(filling, torch.nan),
        group=group_numbers(batch.keys),
        version=oldest * updates_per_version,
        **tokens,
        **{name: padded(data[name])[:, 0].float() for name in norms},
    )
    return rows, nested


def padded(values: Tensor) -> Tensor:
    """`[B, T]` of a nested tensor with one row per response."""
    return values.to_padded_tensor(0) if values.is_nested else values


def _as_wide(values: Tensor, mask: Tensor) -> Tensor:
    """float32, zero where a token carries no loss: what stands there need not be a log-probability."""
    return torch.where(mask, values.float(), 0.0)


def nested_like(values: Tensor, mask: Any) -> Tensor:
    """The first tokens of each row of `[B, T]`, as many as the nested response mask has."""
    lengths = mask.offsets().diff().tolist()
    parts = [row[:length].clone() for row, length in zip(values, lengths, strict=True)]
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def prompt_of(key: str) -> str:
    """The prompt of a trajectory; verl's keys are `prompt_session_output`."""
    return key.split("_")[0]


def group_numbers(keys: Sequence[str]) -> Tensor:
    """`[B]` a number for each prompt, in the order of appearance."""
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(prompt_of(key), len(numbers)) for key in keys])


def refuse_several_outputs(keys: Sequence[str]) -> None:
    """Raise `UsageError` where an agent loop gave one session several trajectories."""
    for key in keys:
        output = key.rsplit("_", 2)[-1]
        if output != "0":
            raise UsageError(
                f"trajectory {key} is output {output} of its session: a method takes one trajectory per session; use "
                "an agent loop with one output, or verl's own losses"
            )
