"""Reshaping what a layer saw to [N, T, ...], one trajectory per row."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.errors import InexactError, NotBatchedError


class RowLayout:
    """Rows of the batch are trajectories: [N, T] positions, or the same flattened row by row.

    Args:
        count: Number of trajectories N.
        lengths: Numbers of positions per row that layers of this model are known to see.
    """

    def __init__(self, count: int, lengths: Collection[int]) -> None:
        self.count, self.lengths = count, lengths

    def kind(self, shape: torch.Size) -> str:
        """How axes are read: `one` [N], `rows` [N, ...], `flat` [N * T] or [1, N * T]; empty if they cannot be."""
        if shape[0] == self.count:
            return "rows" if len(shape) > 1 else "one"
        total = shape.numel()
        flat = total % self.count == 0 and total // self.count in self.lengths
        return "flat" if flat and (len(shape) == 1 or shape[0] == 1) else ""

    def rows(self, x: Tensor, shape: torch.Size, real: bool = True) -> Tensor:
        """Reshape a layer's input or output gradient to [N, T, ...].

        Args:
            x: The tensor; its leading axes are `shape`.
            shape: The axes of rows and positions.
            real: Positions of no trajectory become zero, as gradients need; else they may hold anything.

        Raises:
            NotBatchedError: The axes cannot be assigned to rows and positions.
        """
        kind = self.kind(shape)
        if kind == "rows" and len(shape) == 2:
            return x
        if not kind:
            raise NotBatchedError(
                f"a layer saw positions of shape {list(shape)} for {self.count} trajectories: its first axis must be "
                "the trajectory, or all rows and positions flattened"
            )
        if kind == "rows":
            return x.flatten(1, len(shape) - 1)
        return x.reshape(self.count, -1, *x.shape[len(shape) :])

    def trajectories(self, logp: Tensor) -> Tensor:
        """Index of the trajectory of each element of `logp`, in its shape."""
        numbers = torch.arange(len(logp), device=logp.device)
        return numbers.view(-1, *[1] * (logp.ndim - 1)).expand_as(logp)


class PackedLayout(RowLayout):
    """Several trajectories share a row: each is gathered into a row of its own.

    Args:
        segments: int64, one tensor for every set of positions that layers see (all of them; those of the head): the
            index of each position's trajectory, 0..N-1, or -1 for none.
    """

    def __init__(self, segments: Sequence[Tensor]) -> None:
        super().__init__(int(max(each.max() for each in segments)) + 1, ())
        self.segments = segments
        self.indices = {each.numel(): _gathering(each.flatten(), self.count) for each in segments}

    def kind(self, shape: torch.Size) -> str:
        """See `RowLayout.kind`: here `packed`."""
        return "packed" if shape.numel() in self.indices else ""

    def trajectories(self, logp: Tensor) -> Tensor:
        """See `RowLayout.trajectories`.

        Raises:
            InexactError: No segments were given for these positions.
        """
        for each in self.segments:
            if each.shape == logp.shape:
                return each
        raise InexactError(f"no segments have the shape {list(logp.shape)} of logp: pass those of its positions, too")

    def rows(self, x: Tensor, shape: torch.Size, real: bool = True) -> Tensor:
        """See `RowLayout.rows`.

        Raises:
            InexactError: No segments were given for these positions.
        """
        if not self.kind(shape):
            raise InexactError(
                f"a layer saw {shape.numel()} positions but segments were given for {list(self.indices)}: pass those "
                "of these positions, too"
            )
        index, inside = self.indices[shape.numel()]
        gathered = x.flatten(0, len(shape) - 1)[index]
        if real:
            gathered[~inside] = 0
        return gathered


def _gathering(segments: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Indices of every trajectory's positions, int64 [N, T] padded with 0, and bool [N, T], False at padding."""
    order = torch.argsort(segments, stable=True)
    order = order[segments[order] >= 0]
    lengths = torch.bincount(segments[order], minlength=count)
    inside = torch.arange(int(lengths.max()), device=segments.device) < lengths[:, None]
    index = torch.zeros_like(inside, dtype=torch.int64)
    index[inside] = order
    return index, inside
