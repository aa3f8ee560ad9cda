"""Whole updates of the default cell on one thread: shares of the phases, methods and record levels, memory over time.

    python tests/benchmarks/updates.py                # the tables of docs/benchmarks/updates.md
    python tests/benchmarks/updates.py --memory 5000  # resident memory of a cell of so many updates

Configurations take turns in every round, so that a drifting machine hits all of them alike; ratios are what to quote.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records import Level

PHASES = ("seconds_sample", "seconds_score", "seconds_update", "seconds_record")


def trainer(method: str, record: Level = "basic", task: str = "chain", steps: int = 10_000) -> Trainer:
    return build_trainer(
        CellConfig(method=method, staleness=1, seed=0, task=task, steps=steps, eval_every=steps, record=record)
    )


def matmul_rate(size: int = 512) -> float:
    """Best floating-point operations per second of a square float32 product."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best = 1e9
    for _ in range(60):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best


def rounds(trainers: dict[str, Trainer], count: int) -> dict[str, list[float]]:
    """Milliseconds of every update, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for number in range(count + 3):
        for name, one in trainers.items():
            began = time.perf_counter()
            one.advance()
            if number >= 3:
                times[name].append(1e3 * (time.perf_counter() - began))
    return times


def arithmetic(one: Trainer) -> float:
    """Floating-point operations of one update's products with weight matrices.

    2 per weight and position to sample, 2 to score, 4 backward: as if every layer saw every position, but a prompt only
    once per group.
    """
    weights = sum(p.numel() for name, p in one.policy.named_parameters() if p.ndim == 2 and "positions" not in name)
    weights -= one.policy.tokens.weight.numel()
    P, G = one.config.prompts, one.config.responses
    sampled = P * one.task.prompt_length + P * G * one.task.max_response
    return 2.0 * weights * sampled + 6.0 * weights * sampled


def table(title: str, trainers: dict[str, Trainer], count: int, rate: float) -> None:
    times = rounds(trainers, count)
    base = statistics.median(next(iter(times.values())))
    columns = ("", "median ms", "fastest ms", "ratio", "sampling", "scoring", "learning", "recording", "of matmul rate")
    print(f"\n{title}\n\n| {' | '.join(columns)} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, values in times.items():
        recorded = trainers[name].recorder.tables["steps.parquet"].columns
        phases = [statistics.median(recorded[phase]) for phase in PHASES]
        shares = " | ".join(f"{100 * phase / sum(phases):.0f}%" for phase in phases)
        middle, fastest = statistics.median(values), min(values)
        achieved = arithmetic(trainers[name]) / (fastest / 1e3) / rate
        print(f"| {name} | {middle:.1f} | {fastest:.1f} | {middle / base:.2f} | {shares} | {100 * achieved:.0f}% |")


def resident_megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def memory(updates: int) -> None:
    one = trainer("vcpo", steps=updates)
    print("| updates | resident MB |\n|---|---|")
    while not one.status:
        one.advance()
        if one.step in (10, 100) or one.step % (updates // 5) == 0:
            print(f"| {one.step} | {resident_megabytes():.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", type=int, default=0, metavar="UPDATES")
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    if arguments.memory:
        memory(arguments.memory)
        return
    rate = matmul_rate()
    print(f"measured matmul rate: {rate / 1e9:.0f} Gflop/s on one thread")
    for task in ("chain", "walk"):
        methods = {
            name: trainer(name, task=task) for name in ("reinforce", "clip", "vespo", "vcpo(baseline=group)", "vcpo")
        }
        table(f"Methods, {task}, record basic", methods, arguments.rounds, rate)
    levels: tuple[Level, ...] = ("basic", "diagnostics", "full")
    for method in ("clip", "vcpo"):
        table(f"Record levels, chain, {method}", {lv: trainer(method, lv) for lv in levels}, arguments.rounds, rate)


if __name__ == "__main__":
    main()
