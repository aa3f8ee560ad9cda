"""A policy under other trained weights for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from vcpo_bench.bench.policies.base import Policy


@contextmanager
def weights_of(policy: Policy, others: Mapping[str, Tensor]) -> Iterator[None]:
    """Give the policy other trained weights inside the block; frozen weights are never copied."""
    own = {name: tensor.to("cpu", copy=True) for name, tensor in policy.trained_state().items()}
    policy.load_trained(others)
    try:
        yield
    finally:
        policy.load_trained(own)
