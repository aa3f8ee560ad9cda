"""The simulator against published seconds per step: fitted on synchronous and unlimited asynchrony, it predicts K = 4.

`python tests/benchmarks/published_timings.py`. The timings are from the VCPO authors' page, Qwen2.5-7B on 4 + 4 GPUs,
for five caps on the response length. Two numbers per cap fix two unknowns: the mean time of a prompt's group (it
sets the unlimited speed) and the spread of that time (it sets how long a synchronous step waits for the slowest). What
they do not fix, the learner's share of the unlimited step, is tried at three values.
"""

from __future__ import annotations

from vcpo_bench.bench.regimes import CellShape
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.simulation import simulate

PUBLISHED = {2: (128, 69, 68), 4: (202, 151, 88), 8: (527, 235, 141), 16: (1187, 677, 274), 24: (1960, 1233, 577)}
"""Cap in thousands of tokens: seconds per step synchronous, K = 4, unlimited."""
SHAPE = CellShape(seed=0, prompts=32, responses=1, tokens=1)
SHARES = (0.25, 0.5, 1.0)
UNLIMITED = 64


def seconds(k: int, times: ServiceTimes) -> float:
    """Simulated time per step, the sampler working on one batch's worth of groups at once."""
    return 1 / simulate(AsyncSchedule(k, SHAPE), times, SHAPE.prompts, k + 120).updates_per_second


def fitted(synchronous: float, unlimited: float, share: float) -> ServiceTimes:
    """Service times that reproduce both, as far as a spread in [0, 1.5] can."""
    low, high = 0.0, 1.5
    for _ in range(12):
        spread = (low + high) / 2
        times = ServiceTimes(unlimited, share * unlimited, spread=spread)
        if seconds(0, times) < synchronous:
            low = spread
        else:
            high = spread
    return times


def main() -> None:
    """Print the table."""
    print("| cap | share | spread | sync, fitted | unlimited, fitted | K = 4, predicted | error |")
    print("|---|---|---|---|---|---|---|")
    for cap, (synchronous, four, unlimited) in PUBLISHED.items():
        for share in SHARES:
            times = fitted(synchronous, unlimited, share)
            said = seconds(4, times)
            print(
                f"| {cap}k | {share} | {times.spread:.2f} | {synchronous}, {seconds(0, times):.0f} "
                f"| {unlimited}, {seconds(UNLIMITED, times):.0f} | {four}, {said:.0f} | {said / four - 1:+.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
