"""A column of numbers that grows at its end, in hardly more memory than its numbers take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FIRST = 1 << 16
"""Numbers that a column has room for at first; room that is not used yet takes no memory."""


class FloatColumn:
    """Numbers below one another; many small arrays put together at the end would take twice the memory."""

    def __init__(self) -> None:
        self._room: Array = np.empty(_FIRST)
        self._length = 0

    def put(self, begin: int, values: Array) -> None:
        """Add numbers from row `begin` on, at or below the end of those there are; rows skipped are missing."""
        end = begin + len(values)
        if end > len(self._room):
            larger = np.empty(max(end, 2 * len(self._room)))
            larger[: self._length] = self._room[: self._length]
            self._room = larger
        self._room[self._length : begin] = np.nan
        self._room[begin:end] = values
        self._length = end

    def whole(self, length: int) -> Array:
        """All numbers [length]; those after the last that was added are missing."""
        if length > self._length:
            self.put(length, np.empty(0))
        return self._room[:length]
