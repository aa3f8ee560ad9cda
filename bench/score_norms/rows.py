"""Bringing what a layer saw into the form [B, T, ...]: one trajectory per row."""

from collections.abc import Collection

from torch import Tensor

from vcpo_bench.bench.score_norms.inspection import InexactError


def by_row(x: Tensor, positions: int, B: int, lengths: Collection[int]) -> Tensor:
    """Reshape a layer's input or output gradient to [B, T, ...].

    Args:
        x: its first `positions` axes count rows and positions: [B, ...] or rows and positions flattened, row by row.
        positions: see above; at least 1.
        B: number of trajectories.
        lengths: the numbers of positions per row that layers of this model are known to see.

    Raises:
        InexactError: the axes cannot be told apart.
    """
    shape = x.shape[:positions]
    if shape[0] == B:
        return x.flatten(1, positions - 1) if positions > 1 else x.unsqueeze(1)
    count = shape.numel()
    if count % B == 0 and count // B in lengths and (positions == 1 or shape[0] == 1):
        return x.reshape(B, count // B, *x.shape[positions:])
    raise InexactError(
        f"a layer saw positions of shape {list(shape)} for {B} trajectories: the first axis must be the trajectory, or "
        "rows and positions flattened without leaving any out"
    )
