"""A mock accelerator: tensors that claim another device, are computed on the CPU, and never mix with CPU tensors.

Code that was only ever run on a CPU usually fails on a GPU because an operation gets tensors of two devices. Importing
this file gives the process a device `mock:0` that raises the same error; numbers are those of the CPU. It cannot
be undone, hence needs a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "mock:0"
aten = torch.ops.aten
MOVES = (aten.copy_.default, aten._to_copy.default)
INDEXING = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)


class Backend(_DummyBackendModule):  # type: ignore[misc,no-any-unimported]
    """What autocast asks of a device."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


_setup_privateuseone_for_python_backend("mock", Backend())


class Elsewhere(Tensor):
    """A tensor of the mock device around one in main memory."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Elsewhere:
        found: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME),
        )
        found.inner = inner
        return found

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}))

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("a tensor of the mock device has no array: use Tensor.cpu() first")


def _run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Compute in main memory; the results are where the inputs are, or where they are asked to be."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    ours = [x for x in tensors if isinstance(x, Elsewhere)]
    if ours and func not in MOVES:
        _check_devices(func, args, tensors)
    asked = kwargs.get("device")
    if asked is not None:
        kwargs["device"] = torch.device("cpu")
    out = func(*_inner(args), **_inner(kwargs))
    if torch.Tag.inplace_view in func.tags and ours:
        with no_dispatch():  # the wrapper changes its shape too
            func(*args, **kwargs)
    here = not ours if asked is None else torch.device(asked).type == "cpu"
    if func is aten.copy_.default:
        return args[0]
    known = {id(x.inner): x for x in ours}
    return out if here else tree_map(lambda x: known.get(id(x), _wrapped(x)) if isinstance(x, Tensor) else x, out)


def _check_devices(func: Any, args: Sequence[Any], tensors: Sequence[Tensor]) -> None:
    """As on a GPU: single numbers, and the indices of what is there, may be in main memory."""
    strangers = [x for x in tensors if not isinstance(x, Elsewhere) and x.dim() > 0]
    if func in INDEXING and isinstance(args[0], Elsewhere):
        strangers = [x for x in strangers if x.dtype not in (torch.int64, torch.bool)]
    if strangers:
        raise RuntimeError(f"expected all tensors on the same device, but {func} got some on {NAME} and some on cpu")


def _inner(nested: Any) -> Any:
    return tree_map(lambda x: x.inner if isinstance(x, Elsewhere) else x, nested)


def _wrapped(tensor: Tensor) -> Elsewhere:
    return tensor if isinstance(tensor, Elsewhere) else Elsewhere(tensor)


class _Mocking(TorchDispatchMode):
    """Lets functions that take no tensor make one on the device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(func, args, dict(kwargs or {}))


@contextmanager
def mocked() -> Iterator[None]:
    """Inside, the device is there. Inference mode becomes `no_grad`: wrappers know no inference tensors."""
    saved, torch.inference_mode = torch.inference_mode, torch.no_grad  # type: ignore[assignment,misc]
    torch.__future__.set_swap_module_params_on_conversion(True)  # or moving a module would untie its tied weights
    try:
        with _Mocking():
            yield
    finally:
        torch.inference_mode = saved  # type: ignore[misc]


def _empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype | None = None, **rest: Any) -> Elsewhere:
    return Elsewhere(torch.empty_strided(size, stride, dtype=dtype))


def _copy(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _inner(target).copy_(_inner(source))
    return target


# `torch.tensor(..., device=...)` goes past dispatch modes and needs these two
_KERNELS = torch.library.Library("aten", "IMPL")
_KERNELS.impl("empty_strided", _empty, "PrivateUse1")
_KERNELS.impl("_copy_from", _copy, "PrivateUse1")
_AUTOCAST = torch.library.Library("_", "IMPL")
_AUTOCAST.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
