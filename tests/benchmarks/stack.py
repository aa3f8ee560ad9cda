"""Cells of `chain` as one stack against the same cells one by one, on one core.

    python tests/benchmarks/stack.py                     # the tables of docs/benchmarks/stack.md
    python tests/benchmarks/stack.py --device cuda --cells 1,64,256,1000

Both take turns in every round. On a CPU the processor time of this process counts, which other processes disturb least;
on a GPU the time on the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.feeding.source import PlannedSource
from vcpo_bench.bench.stack import learner
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer

MOST_ALONE = 8
"""Cells that are timed alone, one after the other; they all cost the same."""
METHODS = ("clip", "vespo", "reinforce", "tis")


def cells(count: int, device: str, methods: tuple[str, ...], prompts: int, responses: int) -> list[Trainer]:
    """Trainers of a grid: methods, lags 1 and 4, and seeds in turn; none is evaluated after the start."""
    return [
        build_trainer(
            CellConfig(
                method=methods[n % len(methods)],
                staleness=(1, 4)[n % 2],
                seed=n // (2 * len(methods)),
                task="chain",
                prompts=prompts,
                responses=responses,
                steps=100_000,
                eval_every=100_000,
            ),
            device=device,
        )
        for n in range(count)
    ]


def seconds(run: Callable[[], object], device: str) -> float:
    """Seconds that a call takes."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    began = clock()
    run()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - began


def row(count: int, device: str, methods: tuple[str, ...], prompts: int, responses: int, rounds: int) -> str:
    """One row of the table: milliseconds for an update of a cell, alone and in a stack."""
    apart = cells(min(count, MOST_ALONE), device, methods, prompts, responses)
    stack = Stack(cells(count, device, methods, prompts, responses))
    stack.advance()
    for trainer in apart:
        trainer.advance()
    one, together = [], []
    for _ in range(rounds):
        together.append(seconds(stack.advance, device) / count)
        one.append(sum(in_a_row(trainer, device) for trainer in apart) / len(apart))
    best, stacked = min(one) * 1e3, min(together) * 1e3
    return f"| {count} | {prompts} x {responses} | {best:.1f} | {stacked:.1f} | {best / stacked:.2f} |"


def in_a_row(trainer: Trainer, device: str) -> float:
    """Seconds of an update of a cell alone: the mean of two, after one that brings its weights into the cache."""
    trainer.advance()
    return seconds(lambda: [trainer.advance() for _ in range(2)], device) / 2


class Timed:
    """Adds up the seconds spent in some functions, which it replaces by timed ones until `undo`."""

    def __init__(self) -> None:
        self.total: dict[str, float] = {}
        self._undo: list[Callable[[], None]] = []

    def watch(self, label: str, owner: object, name: str) -> None:
        """Time one function of a class or module."""
        original = getattr(owner, name)

        def timed(*arguments: object) -> object:
            began = time.process_time()
            try:
                return original(*arguments)
            finally:
                self.total[label] = self.total.get(label, 0.0) + time.process_time() - began

        setattr(owner, name, timed)
        self._undo.append(lambda: setattr(owner, name, original))

    def undo(self) -> None:
        """Put the functions back."""
        for undo in self._undo:
            undo()


def bookkeeping(count: int, updates: int) -> list[str]:
    """Processor time of what a stack does cell by cell in main memory, per cell and update, in milliseconds."""
    stack = Stack(cells(count, "cpu", METHODS, 16, 8))
    stack.advance()
    timed = Timed()
    timed.watch("prompts, noise (`PlannedSource.begin`)", PlannedSource, "begin")
    timed.watch("rewards, queue, check of lags (`PlannedSource.next_batch`)", PlannedSource, "next_batch")
    timed.watch("methods, one call for each (`answers.answer`)", learner, "answer")
    timed.watch("recording (`Trainer.record`)", Trainer, "record")
    for _ in range(updates):
        stack.advance()
    timed.undo()
    return [f"| {label} | {total / updates / count * 1e3:.2f} |" for label, total in timed.total.items()]


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cells", default="1,8,32,64")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    print("| cells | prompts x responses | alone, ms per update of a cell | stacked, ms | ratio |")
    print("|---|---|---|---|---|")
    for count in map(int, asked.cells.split(",")):
        print(row(count, asked.device, METHODS, 16, 8, asked.rounds), flush=True)
    print(row(32, asked.device, METHODS, 2, 4, asked.rounds), flush=True)
    print("\nvcpo, with score norms\n")
    print(row(8, asked.device, ("vcpo",), 16, 8, asked.rounds), flush=True)
    if asked.device == "cpu":
        print("\n| cell by cell, of a stack of 32 | ms per cell and update |\n|---|---|")
        print("\n".join(bookkeeping(32, asked.rounds)))


if __name__ == "__main__":
    main()
