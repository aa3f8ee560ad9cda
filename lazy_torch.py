"""torch, imported when it is first used: what names a method or plans a grid need not wait for it, nor have it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Tensor", "torch"]


class _Torch(ModuleType):
    """Stands for the module; what is asked of it is kept, so that the second time costs what it does there."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module("torch"), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = _Torch("torch")
    Tensor = "torch.Tensor"
    """For annotations only, which nobody evaluates; `isinstance` asks for `torch.Tensor`."""
