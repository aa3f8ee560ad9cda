"""What asynchrony buys and costs: updates and time to a target, and what dropping does to the data.

``python tests/benchmarks/time_to_target.py``. Training is real; time is that of the virtual clock (unit: an update, or
a batch of full-length groups on all slots), so the numbers are the same on every machine.
"""

from __future__ import annotations

from statistics import mean

import torch

from vcpo_bench.bench.cell import CellConfig
from vcpo_bench.bench.trainer import Trainer

STEPS = 200
TARGET = 0.9
"""Share of the best evaluation of the synchronous run that is to be reached."""
TIMES = (
    ("constant", "sampler=1,learner=1"),
    ("5% stragglers, 10x", "sampler=1,learner=1,straggler=0.05"),
    ("5% stragglers, 10x, dropped", "sampler=1,learner=1,straggler=0.05,overflow=drop"),
)
LAGS = (0, 1, 4, 16)


def train(options: str, k: int, task: str, steps: int, record: str = "basic") -> Trainer:
    """One run of vcpo under the virtual clock."""
    torch.set_num_threads(1)
    regime = f"async(clock=virtual,{options})"
    trainer = Trainer(
        CellConfig(method="vcpo", staleness=k, seed=0, task=task, regime=regime, steps=steps, record=record)
    )
    while not trainer.status:
        trainer.advance()
    return trainer


def reach(trainer: Trainer, target: float) -> tuple[int, float] | None:
    """Updates and virtual time at the first evaluation that reaches the target."""
    evals = trainer.recorder.tables["evals.parquet"].columns
    waited = trainer.recorder.tables["steps.parquet"].columns["seconds_wait"]
    for step, reward in zip(evals["step"], evals["sampled_reward"], strict=True):
        if reward >= target:
            return step, sum(waited[:step]) + step
    return None


def main() -> None:
    """Train and print the tables."""
    print("| times | k | updates to target | time to target | best reward | mean lag |\n|---|---|---|---|---|---|")
    target = 0.0
    for name, options in TIMES:
        for k in LAGS:
            trainer = train(options, k, "chain", STEPS)
            best = max(trainer.recorder.tables["evals.parquet"].columns["sampled_reward"])
            target = target or TARGET * best
            found = reach(trainer, target)
            updates, time = (str(found[0]), f"{found[1]:.0f}") if found else ("-", "-")
            lag = mean(trainer.recorder.tables["steps.parquet"].columns["lag_mean"])
            print(f"| {name} | {k} | {updates} | {time} | {best:.3f} | {lag:.1f} |", flush=True)
    print(f"\ntarget: {target:.3f}\n")
    print(
        "| options, walk-eos, k = 2 | dropped | length trained, dropped | reward trained, dropped |\n|---|---|---|---|"
    )
    for options in ("spread=0.7", "straggler=0.05"):
        trainer = train(f"sampler=1,learner=1,slots=24,{options},overflow=drop", 2, "walk-eos", 100, "full")
        trained = trainer.recorder.tables["samples.parquet"].columns
        lost = trainer.recorder.tables["events.parquet"].columns
        share = len(lost["length"]) / (len(lost["length"]) + 16 * 100)
        print(
            f"| {options} | {share:.1%} | {mean(trained['length']):.2f}, {mean(lost['length']):.2f} "
            f"| {mean(trained['reward']):.3f}, {mean(lost['reward']):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
