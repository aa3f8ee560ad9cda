"""Matrix products of what layers saw, with results in float32 at least.

bfloat16 tensors on an NVIDIA GPU are multiplied as they are, with float32 sums and float32 results: a product of two
bfloat16 numbers has all its bits in float32, so nothing is rounded that a cast to float32 would keep, and no copy in
float32 is made. Elsewhere they are cast: on a CPU, torch can only return such products rounded to bfloat16, which
changes squared norms by more than 1e-3.
"""

import torch
from torch import Tensor

from vcpo_bench.bench.score_norms.rules import at_least_float32

DEVICES = frozenset({"cuda"} if torch.version.hip is None else ())
"""Types of devices on which `torch.mm` and `torch.bmm` multiply bfloat16 into float32."""


def stays_bfloat16(x: Tensor) -> bool:
    """Whether products of x are formed without a cast."""
    return x.dtype is torch.bfloat16 and x.device.type in DEVICES


def factor(x: Tensor) -> Tensor:
    """What to multiply in place of x: x itself where that sums in float32 at least, else a copy that does."""
    return x if stays_bfloat16(x) else at_least_float32(x)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product [n, m] or [B, n, m] of [n, k] and [k, m], or of batches of them, of one dtype."""
    multiply = torch.mm if left.dim() == 2 else torch.bmm
    if stays_bfloat16(left):
        found: Tensor = multiply(left, right, out_dtype=torch.float32)
        return found
    return multiply(at_least_float32(left), at_least_float32(right))


def parts(x: Tensor, count: int) -> list[Tensor]:
    """bfloat16 tensors whose sum is x, in float32, but for 2^-9 of it to the power of `count`."""
    found, x = [], x.float()
    for _ in range(count):
        found.append(x.to(torch.bfloat16))
        x = x - found[-1]
    return found


def weighted_positions(weights: Tensor, rows: Tensor) -> Tensor:
    """The sum over n of weights[n] times rows[n], [M] from [N] and [N, M]."""
    if stays_bfloat16(rows):
        return product(torch.stack(parts(weights, 3)), rows).sum(0)
    rows = at_least_float32(rows)
    return weights.to(rows.dtype) @ rows


def exact_product(left: Tensor, right: Tensor) -> Tensor:
    """Product of [n, k] in float32 or wider and a factor [k, m], or batches; numbers on the left lose at most 2^-18."""
    if not stays_bfloat16(right):
        return left @ right
    high, low = parts(left, 2)
    return product(high, right).add_(product(low, right))


def add_gram(total: Tensor, x: Tensor, like: Tensor) -> None:
    """Add x x^T to `total` [n, n], for x [n, k] in float32 at least, with products formed as those of `like`.

    Or [B, n, n] and [B, n, k].
    """
    if not stays_bfloat16(like):
        (total.addmm_ if total.dim() == 2 else total.baddbmm_)(x, x.mT)
        return
    high, low = parts(x, 2)
    mixed = product(low, high.mT)
    total.add_(product(high, high.mT)).add_(mixed).add_(mixed.mT)


def scaled(rows: Tensor, weights: Tensor) -> Tensor:
    """Multiply rows [N, M] by weights [N], as a factor of products: rounded to bfloat16 where the rows stay so.

    A plain backward pass rounds this product too, where it multiplies the gradient of a logit by the coefficient.
    """
    if stays_bfloat16(rows):
        return torch.mul(rows, weights.float().unsqueeze(1), out=torch.empty_like(rows))
    rows = at_least_float32(rows)
    return rows * weights.to(rows.dtype).unsqueeze(1)
