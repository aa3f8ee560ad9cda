"""Cuts what one rank sampled into micro-batches, so that the responses to a prompt share an optimizer step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.trl.lag import Samples


def order_of_rows(rows: int, windows: int, group: int) -> Tensor:
    """`[rows]` a random order in which each of the windows holds whole groups, as far as `group` divides them.

    Args:
        rows: Rows of this rank; the responses to one prompt stand together.
        windows: Optimizer steps that share them.
        group: Responses to a prompt.
    """
    if windows == 1:
        return torch.randperm(rows)
    block = group if (rows // windows) % group == 0 else 1
    blocks = torch.randperm(rows // block)
    members = blocks.unsqueeze(1) * block + torch.arange(block)
    within = [part[torch.randperm(len(part))] for part in members.flatten().chunk(windows)]
    return torch.cat(within)


def micro_batches(samples: Samples, order: Tensor, count: int) -> list[Samples]:
    """The samples in this order, cut into `count` equal micro-batches; values that are not per row are in each."""
    from trl.trainer.utils import split_pixel_values_by_grid, split_tensor_dict, unsplit_pixel_values_by_grid

    rows = len(order)
    per_row = split_pixel_values_by_grid(samples)
    arranged = {name: _arranged(value, order, rows) for name, value in per_row.items()}
    return [unsplit_pixel_values_by_grid(part) for part in split_tensor_dict(arranged, count)]


def _arranged(value: Any, order: Tensor, rows: int) -> Any:
    if isinstance(value, Tensor):
        return value[order.to(value.device)] if value.dim() and len(value) == rows else value
    if isinstance(value, Sequence) and len(value) == rows:
        return [value[place] for place in order.tolist()]
    return value
