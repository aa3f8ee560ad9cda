"""Wall-clock truth of asynchronous training: measured against split synchronous training and against the simulator.

Run it alone on a machine: `python tests/benchmarks/async_speed.py`. Times of sampler and learner are emulated: each
takes at least so long, most of it waiting, so that they do not compete for cores. What they take beyond is fitted on
two runs, and the simulator predicts six others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.training.build import build_trainer

UPDATES = 40
GAINS = (
    ("constant", "sampler=0.4,learner=0.4"),
    ("spread 0.5", "sampler=0.4,learner=0.4,spread=0.5"),
    ("5% stragglers, 10x", "sampler=0.4,learner=0.4,straggler=0.05"),
    ("5% stragglers, 10x, dropped", "sampler=0.4,learner=0.4,straggler=0.05,overflow=drop"),
)


@dataclass(frozen=True)
class Measured:
    """What a real run came to after the fill: speeds, lag, shares of time at work, and what was not emulated.

    Attributes:
        sampling: Seconds a group took beyond its emulated time.
        learning: Seconds an update took beyond its emulated time.
    """

    updates_per_second: float
    samples_per_second: float
    mean_lag: float
    sampler_busy: float
    learner_busy: float
    sampling: float
    learning: float


def measure(options: str, k: int) -> Measured:
    """Train a cell with a sampler process and read its tables."""
    regime = REGIMES.parse(f"async({options})")
    assert regime.service is not None
    config = CellConfig(
        method="clip", staleness=k, seed=0, task="chain", regime=regime.text(), steps=UPDATES + k, eval_every=10**6
    )
    trainer, ends = build_trainer(config), []
    try:
        while not trainer.status:
            trainer.advance()
            ends.append(time.perf_counter())
    finally:
        trainer.close()
    columns = trainer.recorder.tables["steps.parquet"].columns
    rows = range(k + 2, UPDATES + k)  # the first update waits for the process to start
    seconds = ends[rows[-1]] - ends[rows[0] - 1]
    waiting = sum(columns["seconds_wait"][i] for i in rows)
    return Measured(
        updates_per_second=len(rows) / seconds,
        samples_per_second=len(rows) / seconds * config.prompts * config.responses,
        mean_lag=sum(columns["lag_mean"][i] for i in rows) / len(rows),
        sampler_busy=sum(columns["sampler_busy"][i] for i in rows) / len(rows),
        learner_busy=1 - waiting / seconds,
        sampling=median(columns["seconds_in_flight"][i] for i in rows) - regime.service.times.sampler,
        learning=max(0.0, (seconds - waiting) / len(rows) - regime.service.times.learner),
    )


def main() -> None:
    """Measure and print the tables."""
    torch.set_num_threads(1)
    print("| times | k | updates/s | samples/s | of synchronous | mean lag | sampler busy | learner busy |")
    print("|---|---|---|---|---|---|---|---|")
    for name, options in GAINS:
        base = 0.0
        for k in (0, 1, 4):
            found = measure(options, k)
            base = base or found.updates_per_second
            print(
                f"| {name} | {k} | {found.updates_per_second:.2f} | {found.samples_per_second:.0f} "
                f"| {found.updates_per_second / base:.2f} | {found.mean_lag:.2f} | {found.sampler_busy:.0%} "
                f"| {found.learner_busy:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
