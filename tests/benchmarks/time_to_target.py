"""What asynchrony buys and costs: updates and time to a target, and what dropping does to the data.

    python tests/benchmarks/time_to_target.py         # under the virtual clock: the same numbers on every machine
    python tests/benchmarks/time_to_target.py --real  # by the wall clock, on a machine with two free cores

Virtual time: one unit for an update, and for a batch of full-length groups on all slots. Baseline (a), split
synchronous, is lag 0: sampler and learner, each on a device of its own, take turns. Baseline (b), colocated, is both
devices doing everything together, data-parallel; virtual time grants it perfect scaling, half of (a).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.regimes import REGIMES, CellShape
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.simulation import steps
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from ranks.launch import parallel_trainer

STEPS = 200
TARGET = 0.9
"""Share of the best evaluation of the synchronous run of the same seed that is to be reached."""
SEEDS = (0, 1, 2, 3, 4)
CASES = (
    ("chain", "constant", "", (0, 1, 4)),
    ("chain", "5% stragglers, 10x", ",straggler=0.05", (0, 1, 4)),
    ("chain", "5% stragglers, 10x, dropped", ",straggler=0.05,overflow=drop", (1, 4)),
    ("walk-eos", "by length", "", (0, 1, 4)),
)


def cell(
    method: str, k: int, task: str, regime: str, seed: int, steps: int = STEPS, record: str = "basic"
) -> CellConfig:
    given = {"method": method, "task": task, "regime": regime, "record": record}
    return CellConfig(**{"staleness": k, "seed": seed, "steps": steps} | given)


def train(options: str, k: int, task: str, seed: int = 0, steps: int = STEPS, record: str = "basic") -> Trainer:
    """One run of vcpo under the virtual clock."""
    trainer = build_trainer(
        cell("vcpo", k, task, f"async(clock=virtual,sampler=1,learner=1{options})", seed, steps, record)
    )
    while not trainer.status:
        trainer.advance()
    return trainer


def best(trainer: Trainer) -> float:
    return max(trainer.recorder.tables["evals.parquet"].columns["sampled_reward"])


def reach(trainer: Trainer, target: float) -> int | None:
    """Updates at the first evaluation that reaches the target."""
    evals = trainer.recorder.tables["evals.parquet"].columns
    reached = (s for s, reward in zip(evals["step"], evals["sampled_reward"], strict=True) if reward >= target)
    return next(reached, None)


def shown(values: list[int | None] | list[float | None], form: str = "{:.0f}") -> str:
    return ", ".join("-" if value is None else form.format(value) for value in values)


def virtual() -> None:
    """The table of the virtual clock."""
    print(
        "| task, times | k | updates to target | time to target | best reward | mean lag |\n|---|---|---|---|---|---|"
    )
    targets: dict[tuple[str, int], float] = {}
    for task, name, options, lags in CASES:
        for k in lags:
            updates: list[int | None] = []
            times: list[float | None] = []
            bests, realized = [], []
            for seed in SEEDS:
                trainer = train(options, k, task, seed)
                targets.setdefault((task, seed), TARGET * best(trainer))
                found = reach(trainer, targets[task, seed])
                rows = trainer.recorder.tables["steps.parquet"].columns
                updates.append(found)
                times.append(None if found is None else sum(rows["seconds_wait"][:found]) + found)
                bests.append(best(trainer))
                realized.append(mean(rows["lag_mean"]))
            rest = f"{shown(bests, '{:.2f}')} | {mean(realized):.1f} |"
            print(f"| {task}, {name} | {k} | {shown(updates)} | {shown(times)} | {rest}", flush=True)
            if k == 0:
                halves = [None if value is None else value / 2 for value in times]
                print(f"| {task}, {name} | 0, (b) | {shown(updates)} | {shown(halves)} | {rest}", flush=True)


def crossover() -> None:
    """Time per update by how much times vary, every response at full length; no training."""
    lags = (0, 1, 2, 4, 8)
    print("\n| times | (a) | (b) | " + " | ".join(f"async, k = {k}" for k in lags[1:]) + " |\n" + "|---" * 7 + "|")
    for options in ("", "spread=0.25", "spread=0.5", "spread=1", "straggler=0.05", "straggler=0.05,overflow=drop"):
        regime = REGIMES.parse(f"async(clock=virtual,sampler=1,learner=1,{options})".replace(",)", ")"))
        found = []
        for k in lags:
            ends = []
            for seed in range(5):
                schedule = regime.schedule(k, CellShape(seed, 16, 8, 12))
                assert isinstance(schedule, AsyncSchedule)
                assert regime.service is not None
                ends.append(list(steps(schedule, regime.service.times, 16, STEPS))[-1][1] / STEPS)
            found.append(mean(ends))
        print(
            f"| {options or 'constant'} | "
            + " | ".join(f"{t:.2f}" for t in (found[0], found[0] / 2, *found[1:]))
            + " |"
        )


@contextmanager
def alone(config: CellConfig) -> Iterator[Trainer]:
    with closing(build_trainer(config)) as trainer:
        yield trainer


@contextmanager
def together(config: CellConfig) -> Iterator[Trainer]:
    with parallel_trainer(config, 2) as trainer:
        yield trainer


WAYS: tuple[tuple[str, Callable[[CellConfig], AbstractContextManager[Trainer]], int, str], ...] = (
    ("one process", alone, 0, "fifo"),
    ("(a) split synchronous", alone, 0, "async"),
    ("(b) colocated, data-parallel", together, 0, "fifo"),
    ("async, k = 1", alone, 1, "async"),
    ("async, k = 4", alone, 4, "async"),
)


class Run(NamedTuple):
    """Updates per second, updates and seconds to the target (None: not reached); evaluations are not counted."""

    rate: float
    updates: int | None
    seconds: float | None


def real() -> None:
    """The table of the wall clock. All ways of a seed run after each other, so that they see the same machine."""
    print(
        "| method, task | way | updates/s | of (a) | updates to target | seconds to target |\n|---|---|---|---|---|---|"
    )
    for method, task in (("clip", "chain"), ("clip", "walk-eos"), ("vcpo", "chain"), ("vcpo", "walk-eos")):
        rounds = [dict(race(method, task, seed)) for seed in SEEDS]
        for name, *_ in WAYS:
            runs = [found[name] for found in rounds]
            shares = [found[name].rate / found["(a) split synchronous"].rate for found in rounds]
            rest = f"{shown([r.updates for r in runs])} | {shown([r.seconds for r in runs], '{:.1f}')} |"
            rates = shown([r.rate for r in runs], "{:.1f}")
            print(f"| {method}, {task} | {name} | {rates} | {median(shares):.2f} | {rest}", flush=True)


def race(method: str, task: str, seed: int) -> Iterator[tuple[str, Run]]:
    """Every way to train a cell, to the target that its synchronous run sets."""
    target = None
    for name, opened, k, regime in WAYS:
        with opened(cell(method, k, task, regime, seed)) as trainer:
            spent = clocked(trainer)
            target = TARGET * best(trainer) if target is None else target
            found = reach(trainer, target)
        # after an evaluation the sampler of an asynchronous run is ahead
        steady = [seconds for i, seconds in enumerate(spent) if i > k + 1 and i % trainer.config.eval_every]
        yield name, Run(1 / mean(steady), found, None if found is None else sum(spent[:found]))


def clocked(trainer: Trainer) -> list[float]:
    """Train to the end: seconds of every update, the start of processes and evaluations left out."""
    spent = []
    evals = trainer.recorder.tables["evals.parquet"].columns
    while not trainer.status:
        done = len(evals["seconds"])
        began = time.perf_counter()
        trainer.advance()
        spent.append(time.perf_counter() - began - sum(evals["seconds"][done:]))
    spent[0] = spent[1]
    return spent


def dropping() -> None:
    """What dropping does to the data."""
    print("\n| options, walk-eos, k = 2 | dropped | length trained, dropped | reward trained, dropped |")
    print("|---|---|---|---|")
    for options in ("spread=0.7", "straggler=0.05"):
        trainer = train(f",slots=24,{options},overflow=drop", 2, "walk-eos", 0, 100, "full")
        trained = trainer.recorder.tables["samples.parquet"].columns
        lost = trainer.recorder.tables["events.parquet"].columns
        share = len(lost["length"]) / (len(lost["length"]) + 16 * 100)
        print(
            f"| {options} | {share:.1%} | {mean(trained['length']):.2f}, {mean(lost['length']):.2f} "
            f"| {mean(trained['reward']):.3f}, {mean(lost['reward']):.3f} |",
            flush=True,
        )


def main() -> None:
    """Train and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="by the wall clock")
    torch.set_num_threads(1)
    keep_freed_memory()
    if parser.parse_args().real:
        real()
        return
    crossover()
    virtual()
    dropping()


if __name__ == "__main__":
    main()
