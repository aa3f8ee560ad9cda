"""What the fields of a batch may be at all: a training loop passes lists, arrays and None sooner or later."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.errors import BatchError

_LARGEST = 2**62


def as_tensor(name: str, value: object) -> Tensor:
    """The tensor of a field.

    Raises:
        BatchError: It is none, or one of a kind that cannot be indexed by rows: sparse, quantized or without values.
    """
    if not isinstance(value, torch.Tensor):
        raise BatchError(f"{name} is {_kind(value)}; give a tensor, such as torch.as_tensor makes")
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        raise BatchError(f"{name} is a sparse, quantized or nested tensor; give a dense one")
    if value.device.type == "meta":
        raise BatchError(f"{name} is a tensor without values (on the device meta)")
    return value


def as_rows(name: str, value: object, rows: int, like: Tensor) -> Tensor:
    """The tensor of a field with one entry per row.

    Raises:
        BatchError: It is no such tensor.
    """
    found = as_tensor(name, value)
    if found.dim() < 1 or found.shape[0] != rows:
        raise BatchError(f"{name} has {found.shape[0] if found.dim() else 'no'} rows; expected {rows}")
    if found.device != like.device:
        raise BatchError(f"{name} is on {found.device} but logp is on {like.device}")
    return found


def check_count(name: str, value: object) -> None:
    """Refuse what is no whole number, or tensor of such.

    Raises:
        BatchError: It is none.
    """
    if isinstance(value, torch.Tensor):
        kind = as_tensor(name, value).dtype
        fits = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    else:
        fits = isinstance(value, Integral) and abs(int(value)) < _LARGEST
    if not fits:
        raise BatchError(f"{name} is {_kind(value)}; expected a whole number")


def check_number(name: str, value: object) -> None:
    """Refuse what is no real number, or tensor of such; None is none given.

    Raises:
        BatchError: It is none.
    """
    is_tensor = isinstance(value, torch.Tensor)
    if as_tensor(name, value).is_complex() if is_tensor else not isinstance(value, Real | None):
        raise BatchError(f"{name} is {_kind(value)}; expected a number")


def check_state(state: object) -> None:
    """Refuse what is no mapping of names to tensors.

    Raises:
        BatchError: It is none.
    """
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise BatchError(f"state is {_kind(state)}; give the state of the last Update")
    for name, value in state.items():
        as_tensor(f"state[{name!r}]", value)


def _kind(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {value.dtype}"
    return "missing" if value is None else f"a {type(value).__name__}"
