"""Passes over the tokens of a batch, each one vectorized kernel that writes into a borrowed buffer."""

from collections.abc import Callable

import torch
from torch import Tensor

from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.buffers import borrow, give_back
from vcpo_bench.methods.core.masking import as_number, gate, gate_into, within


class TokenPasses:
    """What a view offers for tensors `[..., P, G, T]`; it has the batch and the mask of the tokens in play."""

    batch: Batch
    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self._borrowed: list[Tensor] = []
        self._cache: dict[tuple[object, ...], Tensor] = {}

    @property
    def mask_float(self) -> Tensor:
        """`[..., P, G, T]` the mask as zeros and ones in the dtype of `logp`."""
        return self._once(("mask",), lambda: self.buffer().copy_(self.mask.view(torch.int8)))

    def _once(self, key: tuple[object, ...], make: Callable[[], Tensor]) -> Tensor:
        """What `make` returned the first time, until the mask changes."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def buffer(self) -> Tensor:
        """`[..., P, G, T]` uninitialized, in the dtype of `logp`; it is reused once the update is returned."""
        tensor, flat = borrow(self.mask.shape, self.batch.logp.dtype, self.batch.logp.device)
        if flat is not None:
            self._borrowed.append(flat)
        return tensor

    def keepable(self, tensor: Tensor) -> bool:
        """Whether a tensor may be returned to the caller; a buffer of its size is then not reused, a larger one is."""
        flat = self._buffer_of(tensor)
        if flat is not None and flat.numel() == tensor.numel():
            self._borrowed = [other for other in self._borrowed if other is not flat]
            flat = None
        return flat is None

    def is_buffer(self, tensor: Tensor) -> bool:
        """Whether it is one of the large buffers of this update, whole."""
        return tensor.shape == self.mask.shape and self._buffer_of(tensor) is not None

    def _buffer_of(self, tensor: Tensor) -> Tensor | None:
        return next((flat for flat in self._borrowed if flat.data_ptr() == tensor.data_ptr()), None)

    def give_buffers_back(self) -> None:
        """Make the buffers available to the next update."""
        give_back(self._borrowed)
        self._borrowed = []

    def within(self, value: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
        """1 where low <= value <= high (both tensors, or both numbers), else 0, in the shape and dtype of `value`."""
        return within(value, low, high, out=self.buffer() if value.shape == self.mask.shape else None)

    def gate(self, value: Tensor, keep: Tensor | None = None) -> Tensor:
        """The value where a token is in play and `keep` (bool, or zeros and ones) says so, else exactly 0."""
        if keep is None:
            return self.gated(value, self.mask_float)
        both = torch.mul(self.mask_float, as_number(keep, self.mask_float.dtype), out=self.buffer())
        return self.gated(value, both)

    def gated(self, value: Tensor, keep: Tensor, out: Tensor | None = None) -> Tensor:
        """`value` times `keep[..., P, G, T]` (zeros and ones), exactly 0 also where the value is infinite.

        Args:
            value: `[..., P, G, 1|T]`.
            keep: Zeros and ones.
            out: Where to put it: `keep`, when it is of no further use; None: a buffer.
        """
        if value.dtype != keep.dtype:
            return gate(value, keep)
        return gate_into(self.buffer() if out is None else out, value, keep)
