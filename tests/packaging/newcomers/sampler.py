"""Samples as torch does."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.samplers.torch_sampler import TorchSampler


@dataclass(frozen=True, kw_only=True)
class Newcomer(TorchSampler):
    """Samples as its parent does."""

    name = "newcomer"
    summary = "as torch"
