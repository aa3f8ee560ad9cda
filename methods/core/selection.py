"""Where a condition on sorted data starts to hold, found without sorting all of it."""

from __future__ import annotations

from collections.abc import Callable

from vcpo_bench.lazy_torch import Tensor, torch

_SMALL = 1 << 14
_SAMPLE = 2048
Test = Callable[[Tensor, Tensor, Tensor], Tensor]


def first_crossing(value: Tensor, test: Test) -> tuple[Tensor, int]:
    """Where a condition on sorted data first holds.

    Args:
        value: `[n]` finite, non-negative values in any order.
        test: Takes values in ascending order, how many values lie at or before each, and their running sum; says
            where the condition holds. It must stay true once it is.

    Returns:
        The values around the crossing in ascending order, and the place in them of the first for which the condition
        holds (their number when it holds nowhere). The place is at least 1 unless it is the very smallest value.
    """
    count, total = 0, value.new_zeros(())
    rest = value
    while len(rest) > _SMALL:
        sample = rest[:: max(1, len(rest) // _SAMPLE)].sort().values
        low, high = _bracket(rest, sample, test, count, total)
        inside = rest[(rest > low) & (rest <= high)]
        if len(inside) == 0 or len(inside) > len(rest) // 2:
            break
        below = torch.sub(rest, low).le_(0.0)
        number = int(below.sum())
        if number == 0:
            rest = inside
            continue
        smaller = below.mul_(rest)
        before = smaller.max()  # stays, so that the value just before the crossing is at hand
        count, total = count + number - 1, total + smaller.sum() - before
        rest = torch.cat([before.reshape(1), inside])
    ordered = rest.sort().values
    places = count + torch.arange(1, len(ordered) + 1, device=value.device)
    holds = test(ordered, places, total + ordered.cumsum(0))
    where = int(holds.to(torch.int8).argmax()) if bool(holds.any()) else len(ordered)
    return ordered, where


def _bracket(rest: Tensor, sample: Tensor, test: Test, count: int, total: Tensor) -> tuple[Tensor, Tensor]:
    """Two values between which the condition starts to hold, found by halving over the sample."""
    low, high = 0, len(sample) - 1
    bottom, top = sample.new_full((), -torch.inf), sample.new_full((), torch.inf)
    while low <= high:
        middle = (low + high) // 2
        below = torch.sub(rest, sample[middle]).le_(0.0)
        number, running = count + below.sum(), total + torch.dot(below, rest)
        if bool(test(sample[middle].reshape(1), number.reshape(1), running.reshape(1))):
            top, high = sample[middle], middle - 1
        else:
            bottom, low = sample[middle], middle + 1
    return bottom, top
