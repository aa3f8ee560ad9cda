"""Products of bfloat16 with float32 results, which torch has on NVIDIA GPUs only, on the CPU while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

from vcpo_bench.bench.score_norms import chunked_rule, products


@contextmanager
def as_on_a_gpu() -> Iterator[list[str]]:
    """Inside, score norms take a CPU for a GPU with such products; yields the name of each one formed."""
    formed: list[str] = []

    def kernel(name: str) -> None:
        def multiply(left: Tensor, right: Tensor, out_dtype: torch.dtype) -> Tensor:
            if left.dtype is not torch.bfloat16 or right.dtype is not torch.bfloat16 or out_dtype is not torch.float32:
                raise RuntimeError(f"no such product on a GPU: {left.dtype} and {right.dtype} to {out_dtype}")
            formed.append(name)
            with no_dispatch():  # who counts memory does not see how this is done
                return left.float() @ right.float()

        library.impl(f"{name}.dtype", multiply, "CPU")

    with torch.library._scoped_library("aten", "IMPL") as library, pytest.MonkeyPatch.context() as patch:
        for name in ("mm", "bmm"):
            kernel(name)
        patch.setattr(products, "DEVICES", frozenset({"cpu"}))
        patch.setattr(chunked_rule, "ONE_BY_ONE", frozenset())
        yield formed
