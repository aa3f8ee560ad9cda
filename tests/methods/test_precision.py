"""Evidence in float64 is worked on in float64: no constant is rounded to float32 on the way."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from method_expressions import every_choice
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vcpo_bench.methods import Batch, Method, parse_method

Make = Callable[..., Batch]


class Float32Spotter(TorchDispatchMode):
    """Notes every operation that gives a float32 tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32 for leaf in tree_leaves(out)):
            self.seen.add(str(func))
        return out


def ready(text: str) -> Method:
    method = parse_method(text)
    return method.with_series([0.5], 0) if method.needs_series else method


@pytest.mark.parametrize("text", every_choice())
def test_no_operation_leaves_float64(text: str, make_batch: Make) -> None:
    batch, method = make_batch(), ready(text)
    with Float32Spotter() as spotter:
        method(batch)
    assert not spotter.seen


def test_a_ratio_between_the_bound_and_its_float32_neighbor_is_judged_by_the_bound(make_rows: Make) -> None:
    bound = 1.2
    rounded = float(torch.tensor(bound))
    assert rounded > bound  # the rounded bound would let the ratio through
    ratio = torch.tensor((bound + rounded) / 2, dtype=torch.float64)
    batch = make_rows([[float(ratio.log())]], [1.0])
    for text in ("clip", "dual-clip", "dppo-tv(divergence=ratio)", "minpro", "bapo"):
        assert float(parse_method(text)(batch).metrics["share_clipped"]) == 1.0, text
