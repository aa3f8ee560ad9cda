"""Rows for the tests of adapters, and what each of several processes decides on its share of them."""

from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.coefficients import Coefficients, StepRows, gather
from vcpo_bench.methods import parse_method

WIDTH = 9
EXTRAS = ("proximal_logp", "reference_logp", "entropy", "sum_pi_sq")


def make_rows(seed: int = 0, rows: int = 12, tokens: int = 7, group: Tensor | None = None) -> StepRows:
    generator = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(rows, tokens, generator=generator)

    logp = -0.1 - torch.rand(rows, tokens, generator=generator)
    length = torch.randint(0, tokens + 1, (rows,), generator=generator)
    extras: dict[str, Any] = {name: logp - 0.1 * normal() for name in EXTRAS[:2]}
    extras |= {name: normal().abs() for name in EXTRAS[2:]}
    return StepRows(
        logp=logp,
        behavior_logp=logp - 0.4 * normal(),
        mask=torch.arange(tokens) < length.unsqueeze(-1),
        reward=torch.rand(rows, generator=generator),
        group=torch.arange(rows) // 4 if group is None else group,
        version=torch.randint(0, 5, (rows,), generator=generator),
        score_norm_sq=torch.rand(rows, generator=generator) + 0.1,
        **extras,
    )


def take(rows: StepRows, index: Tensor) -> StepRows:
    return StepRows(**{name: value[index] for name, value in rows.tensors().items()})


RANKS = (torch.arange(0, 5), torch.arange(5, 12))
"""Rows of two ranks: groups are spread over them, and they hold different numbers."""


def decide_on_rank(rank: int, world: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=world)
    own = take(make_rows(), RANKS[rank])
    everyone, mine = gather(own)
    decision = Coefficients(parse_method("vcpo"), WIDTH).decide(everyone, now=5)
    torch.save((decision.coefficients[mine], decision.step_scale), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()
