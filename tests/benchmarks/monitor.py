"""Time of one monitored update of 128 trajectories, every gauge and the packaged detectors, also late in a long run."""

from __future__ import annotations

import time

import numpy as np

from vcpo_bench.analysis import Monitor

TRAJECTORIES = 128
UPDATES = 10_000
BUDGET = 1e-3


def main() -> None:
    """Print the fastest and the median update early and late in a run, and the share of the budget."""
    generator, monitor, seconds = np.random.default_rng(0), Monitor(), []
    lengths = np.full(TRAJECTORIES, 12)
    for _ in range(UPDATES):
        log_weights, rewards = generator.normal(0, 1, TRAJECTORIES), generator.integers(2, size=TRAJECTORIES)
        norm = float(np.exp(generator.normal()))
        began = time.perf_counter()
        monitor.step(log_weights, rewards=rewards, lengths=lengths, token_kl=0.01, grad_norm=norm, entropy=1.0)
        seconds.append(time.perf_counter() - began)
    print("| updates seen | fastest, ms | median, ms | median / budget of 1 ms |\n|---|---|---|---|")
    for name, part in (("20 to 500", seconds[20:500]), (f"last 500 of {UPDATES}", seconds[-500:])):
        fastest, middle = min(part), float(np.median(part))
        print(f"| {name} | {fastest * 1e3:.2f} | {middle * 1e3:.2f} | {middle / BUDGET:.2f} |")


if __name__ == "__main__":
    main()
