"""Trajectories in the form that the API takes: one datum per row, inputs shifted by one token against targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

LOSS = "importance_sampling"
"""The only loss that every server has and that takes coefficients of both signs: minus the sum of ratio x advantage."""


class Row(NamedTuple):
    """A trajectory without padding.

    Attributes:
        prompt: Its token ids, at least one.
        response: Token ids.
    """

    prompt: list[int]
    response: list[int]


def unpadded(prompts: Tensor, real: Tensor, responses: Tensor, mask: Tensor) -> list[Row]:
    """The rows of a batch.

    Args:
        prompts: int64 [P, Lp], padded on the left, P dividing B.
        real: bool [P, Lp], False at padding.
        responses: int64 [B, T].
        mask: bool [B, T], True at a beginning of each response.
    """
    group = len(responses) // len(prompts)
    asked = [prompt[kept].tolist() for prompt, kept in zip(prompts, real, strict=True)]
    return [Row(asked[i // group], responses[i][mask[i]].tolist()) for i in range(len(responses))]


def averaged_over(rows: Sequence[Row], reduction: str) -> list[float]:
    """By how much a server divides the loss of each row: what its coefficients are multiplied by.

    Args:
        rows: The whole batch of an update.
        reduction: `mean`: the mean over rows of the mean over the positions of each; `sum`: nothing is divided.
    """
    if reduction == "sum":
        return [1.0] * len(rows)
    return [float(len(rows) * (len(row.prompt) + len(row.response) - 1)) for row in rows]


def datum(types: Any, row: Row, reference: Sequence[float], advantages: Sequence[float]) -> Any:
    """One row for `forward` and `forward_backward` with `LOSS`.

    Positions of the prompt have advantage 0. No weights are sent: not every server reads them.

    Args:
        types: Data types of the client.
        row: The trajectory.
        reference: Log-probability of each response token in the denominator of the ratio.
        advantages: What the ratio of each is multiplied by.
    """
    tokens, before = [*row.prompt, *row.response], [0.0] * (len(row.prompt) - 1)
    floats = {"logprobs": [*before, *reference], "advantages": [*before, *advantages]}
    inputs = {name: types.TensorData(data=values, dtype="float32") for name, values in floats.items()}
    inputs["target_tokens"] = types.TensorData(data=tokens[1:], dtype="int64")
    return types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)


def read_logp(outputs: Sequence[Any], rows: Sequence[Row], mask: Tensor) -> Tensor:
    """`[B, T]` log-probabilities of the response tokens in the answer to `forward`, 0 outside the mask.

    Raises:
        RuntimeError: A row is missing, or has another length than was sent.
    """
    found = torch.zeros(mask.shape)
    sizes = [len(one["logprobs"].data) for one in outputs]
    if sizes != [len(row.prompt) + len(row.response) - 1 for row in rows]:
        raise RuntimeError("tinker_answer_broken: log-probabilities do not fit the rows they were asked for")
    for values, one, row, kept in zip(found, outputs, rows, mask, strict=True):
        values[kept] = torch.tensor([float(value) for value in one["logprobs"].data][len(row.prompt) - 1 :])
    return found


def pieces(rows: int, group: int, greedy: Tensor | None) -> list[tuple[range, bool]]:
    """Rows in runs of one prompt and one kind of decoding: the requests of one sampling.

    Args:
        rows: B.
        group: Rows of one prompt, which follow each other.
        greedy: bool [B], or None: no row is.

    Returns:
        The rows of each request, and whether it is greedy.
    """
    cold = [False] * rows if greedy is None else greedy.tolist()
    found: list[tuple[range, bool]] = []
    for row in range(rows):
        if found and row % group and found[-1][1] == cold[row]:
            found[-1] = (range(found[-1][0].start, row + 1), cold[row])
        else:
            found.append((range(row, row + 1), cold[row]))
    return found
