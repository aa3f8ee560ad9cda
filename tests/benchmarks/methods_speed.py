"""What every method costs: `python tests/benchmarks/methods_speed.py [FILE.md]` prints (and writes) the table.

Two batches on one thread: [16, 8, 12], what the tiny tasks give at every update, in milliseconds; and [64, 16, 512] in
float32, in units of one `exp` over it. CPU time of the thread, the least of many repetitions: the methods and the `exp`
take turns, so that a machine that does other work hits all of them alike. Freed memory is kept in the process, as in
the workers of a grid: without that, page faults of fresh tensors dominate the large batch.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.methods import Batch, Method, describe, geometry_of, method_names, parse_method

SMALL, LARGE = (16, 8, 12), (64, 16, 512)
ROUNDS = 12
SLOW_FUNCTIONS = (
    *("exp", "log", "pow", "sigmoid", "sqrt", "tanh"),
    *("sort", "topk", "cumsum", "cumprod", "index", "nonzero"),
)
WHY = """\
One `exp` is a single pass over one tensor. `clip` makes 15: difference, cast of the mask and its sum, product with it,
extremes and row sums of the log-ratio, `exp`, two bounds, comparison, product with the mask, count, gate, row sums,
product with the advantage. The sums are checks and diagnostics. Two inputs come from outside the cache. About 90
operations on rows (advantage, effective sample sizes, denominators) are the time on [16, 8, 12].

Other work on the machine slows the passes, which move memory, more than the `exp`, which computes. Compare rows of this
table with each other, and two versions of the code only in turns. In turns, on a busy machine, the present code against
that with a product for every gate and a selection for every row: clip 5.9 to 5.2, icepop 6.5 to 4.0, token-tis 4.9 to
3.2, rec 8.5 to 4.2, negatives-cap 5.4 to 4.3; on [16, 8, 12] 0.71 to 0.81 of the time.

Tried and left out, for the passes of `clip`. Blocks of rows that fit the second-level cache: 4 blocks take 1.04 times
as long as the whole, 8 take 1.14 times, 16 take 1.3 times, because every operation has a price per call.
`torch.compile`: 4.4 times one `exp`, other last bits, a C++ compiler at run time, and more than ten seconds for the
first batch and again for the first of another width."""


def batch_of(shape: tuple[int, int, int]) -> Batch:
    """Ragged rows, mildly off policy, with every optional field."""
    generator = torch.Generator().manual_seed(0)
    P, G, T = shape
    logp = -torch.rand(shape, generator=generator)

    def near() -> torch.Tensor:
        return logp + 0.1 * torch.randn(shape, generator=generator)

    length = torch.randint(T // 2, T + 1, (P, G, 1), generator=generator)
    return Batch(
        logp=logp,
        behavior_logp=near(),
        proximal_logp=near(),
        reference_logp=near(),
        entropy=near().abs(),
        sum_pi_sq=near().exp(),
        mask=torch.arange(T) < length,
        valid=torch.ones(P, G, dtype=torch.bool),
        reward=torch.randint(0, 2, (P, G), generator=generator).double(),
        version=torch.zeros(shape, dtype=torch.int64),
        now=3,
        score_norm_sq=0.1 + torch.rand(P, G, generator=generator).double(),
        parameter_distance=0.1 + torch.rand(P, G, generator=generator),
        update_norm=0.1,
        void_turn=torch.arange(P * G).view(P, G) % 5 == 1,
    )


class SlowPasses(TorchDispatchMode):
    """Counts the passes over all tokens that cost several times a multiplication."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens, self.count = tokens, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        over_all = isinstance(args[0] if args else None, torch.Tensor) and args[0].numel() == self.tokens
        self.count += over_all and str(func).removeprefix("aten.").startswith(SLOW_FUNCTIONS)
        return func(*args, **(kwargs or {}))


def is_elementwise(name: str, method: Method, batch: Batch) -> bool:
    """Whether each token's weight is a function of its own ratio, with one `exp` and no other slow function."""
    if geometry_of(name).level != "token" or describe(name).acts_on not in ("ratio", "weight"):
        return False
    with SlowPasses(batch.logp.numel()) as slow:
        method(batch)
    return slow.count == 1


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Least CPU time of one call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return 1e3 * min(times)


def least_times(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least CPU time of one call of each, taking turns, in milliseconds."""
    rounds = [{name: milliseconds(work, repeats) for name, work in works.items()} for _ in range(ROUNDS)]
    return {name: min(times[name] for times in rounds) for name in works}


def table() -> str:
    """The table as Markdown."""
    torch.set_num_threads(1)
    small, large = batch_of(SMALL), batch_of(LARGE)
    methods = {name: parse_method(name) for name in method_names()}
    updates = least_times({name: lambda one=one: one(small) for name, one in methods.items()}, 12)  # type: ignore[misc]
    works: dict[str, Callable[[], object]] = {"": large.logp.exp}
    works |= {name: lambda one=one: one(large) for name, one in methods.items()}  # type: ignore[misc]
    times = least_times(works, 3)
    unit = times.pop("")
    ratios = {name: value / unit for name, value in times.items()}
    elementwise = [name for name, method in methods.items() if is_elementwise(name, method, small)]
    lines = [
        "# What a method costs",
        "",
        "`python tests/benchmarks/methods_speed.py docs/benchmarks/methods.md`, one thread, "
        f"torch {torch.__version__}, {platform.machine()}. One `exp` over [64, 16, 512] in float32: {unit:.2f} ms. "
        f"Load of the machine: {os.getloadavg()[1]:.1f} on {os.cpu_count()} CPUs.",
        "",
        "| method | acts on | ms on [16, 8, 12] | in `exp` on [64, 16, 512] | elementwise |",
        "|---|---|---:|---:|---|",
    ]
    for name, ratio in ratios.items():
        mark = "yes" if name in elementwise else ""
        lines.append(f"| {name} | {describe(name).acts_on} | {updates[name]:.2f} | {ratio:.1f} | {mark} |")
    return "\n".join([*lines, "", *verdict(ratios, elementwise)]) + "\n"


def verdict(ratios: dict[str, float], elementwise: list[str]) -> list[str]:
    """The targets, and who misses them."""
    slow = [f"{name} {ratios[name]:.1f}" for name in elementwise if ratios[name] > 3]
    slowest = [f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio > 20]
    return [
        "Elementwise: the weight of a token is a function of its own ratio, with one `exp` and no other slow function.",
        "Targets: an elementwise method at most 3 times one `exp`, any method at most 20 times.",
        "",
        f"Elementwise above 3: {', '.join(slow) or 'none'}. Above 20: {', '.join(slowest) or 'none'}.",
        "",
        *WHY.splitlines(),
    ]


if __name__ == "__main__":
    keep_freed_memory()
    text = table()
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
