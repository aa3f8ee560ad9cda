"""What a GPU would be told to do, and how often it would be waited for, counted while the CPU does it."""

from __future__ import annotations

from typing import Any, Self

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
WAITING = (aten._local_scalar_dense, aten.nonzero, aten._unique2, aten.equal)
"""Operations whose result, or its size, the CPU needs."""


class Launches(TorchDispatchMode):
    """Operations inside the block that compute something, and those after which a program waits for a GPU.

    A view shares the memory of what it is given, and is neither. An index of booleans counts as one wait each: how many
    of them are True has to be known.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.waits = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        own = Tensor.tolist

        def tolist(tensor: Tensor) -> Any:  # goes past the dispatcher
            self.waits += 1
            return own(tensor)

        self._patch.setattr(Tensor, "tolist", tolist)
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        self._patch.undo()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.operations += not func.is_view
        self.waits += func.overloadpacket in WAITING
        if func.overloadpacket in (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_):
            self.waits += sum(each.dtype is torch.bool for each in tensors[1:])
        return result
