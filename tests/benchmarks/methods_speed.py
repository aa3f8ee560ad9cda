"""What every method costs: `python tests/benchmarks/methods_speed.py [FILE.md]` prints (and writes) the table.

Two batches on one thread: [16, 8, 12], what the tiny tasks give at every update, in milliseconds; and [64, 16, 512] in
float32, in units of one `exp` over it. CPU time of the thread, the least of several repetitions. Freed memory is kept
in the process, as in the workers of a grid: without that, page faults of fresh tensors dominate the large batch.
"""

import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.methods import Batch, describe, method_names, parse_method

SMALL, LARGE = (16, 8, 12), (64, 16, 512)


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
    )


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Least CPU time of one call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return 1e3 * min(times)


def table() -> str:
    """The table as Markdown."""
    torch.set_num_threads(1)
    small, large = batch_of(SMALL), batch_of(LARGE)
    unit = milliseconds(large.logp.exp, 50)
    lines = [
        "# What a method costs",
        "",
        "`python tests/benchmarks/methods_speed.py docs/benchmarks/methods.md`, one thread, "
        f"torch {torch.__version__}, {platform.machine()}. One `exp` over [64, 16, 512] in float32: {unit:.2f} ms.",
        "",
        "| method | acts on | ms on [16, 8, 12] | in `exp` on [64, 16, 512] |",
        "|---|---|---:|---:|",
    ]
    ratios: dict[str, float] = {}
    for name in method_names():
        method = parse_method(name)
        update = milliseconds(lambda method=method: method(small), 50)  # type: ignore[misc]
        ratio = milliseconds(lambda method=method: method(large), 15) / unit  # type: ignore[misc]
        ratios[name] = ratio
        lines.append(f"| {name} | {describe(name).acts_on} | {update:.2f} | {ratio:.1f} |")
    return "\n".join([*lines, "", *verdict(ratios)]) + "\n"


def verdict(ratios: dict[str, float]) -> list[str]:
    """The targets, and who misses them."""
    elementwise = ("aipo", "cispo", "clip", "clip-higher", "dual-clip", "icepop", "token-tis", "two-sided")
    slow = [f"{name} {ratios[name]:.1f}" for name in elementwise if ratios[name] > 3]
    slowest = [f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio > 20]
    return [
        "Targets: an elementwise method at most 3 times one `exp`, any method at most 20 times.",
        f"Elementwise above 3: {', '.join(slow) or 'none'}. Above 20: {', '.join(slowest) or 'none'}.",
        "One `exp` is a single vectorized pass; difference, clamp, `exp`, bounds, mask, product with the advantage and",
        "aggregation are a pass each, so an elementwise method of separate tensor operations costs about five.",
    ]


if __name__ == "__main__":
    keep_freed_memory()
    text = table()
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
