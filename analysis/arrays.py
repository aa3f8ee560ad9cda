"""Numbers as a training loop holds them, as numpy arrays: without importing torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_floats(values: ArrayLike) -> NDArray[np.float64]:
    """Float64 numbers of the same shape.

    Args:
        values: What numpy reads, or torch tensors: on any device, of any number type (numpy has no bfloat16), with
            gradient history or without; also a list of such tensors.
    """
    return np.asarray(_without_torch(values), dtype=np.float64)


def as_flags(values: ArrayLike) -> NDArray[np.bool_]:
    """Bools of the same shape; arguments as `as_floats`."""
    return np.asarray(_without_torch(values), dtype=bool)


def as_number(name: str, value: ArrayLike) -> float:
    """One number.

    Args:
        name: What it is, for the error.
        value: As in `as_floats`, with one element.

    Raises:
        ValueError: It has several elements, or none.
    """
    found = as_floats(value)
    if found.size != 1:
        raise ValueError(f"{name} has shape {list(found.shape)}; it is one number per update")
    return float(found.item())


def _without_torch(values: Any) -> Any:
    if hasattr(values, "detach"):
        return values.detach().cpu().double().numpy()
    if isinstance(values, (list, tuple)) and any(hasattr(one, "detach") for one in values):
        return [_without_torch(one) for one in values]
    return values
