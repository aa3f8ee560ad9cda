"""Seconds per update and the share of sampling: our learner, TRL's GRPOTrainer, and TRL with a method, side by side.

    python tests/benchmarks/against_trl.py --rounds 3 --updates 8

All train on 128 responses (16 prompts, 8 each) of at most 12 tokens, on one thread. TRL and our learner train the same
Llama; our default cell has the built-in policy. Configurations take turns in every round, so that a drifting machine
hits all of them alike. Updates are measured in processor time, which other processes do not disturb, and shares of
sampling in wall time. Quote ratios of one run.

With `--model smollm2` TRL and our learner train that model instead, in float32 at 1e-5, on the same prompts: 8 for each
update, 8 responses each. Rewards are those of a turn's last three batches, and of an evaluation after it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer
from trl_runs import config, model, prompts, trainer

from vcpo_bench.adapters.trl import MonitorCallback
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_folder
from vcpo_bench.bench.cells.opening import open_task
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.hf.create import character_tokenizer
from vcpo_bench.bench.policies.hf.loading import read_network, read_tokenizer
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.trainer import STEPS_FILE

PROMPTS, RESPONSES, TOKENS = 16, 8, 12
LLAMA: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 99}
MODEL_PROMPTS, MODEL_RATE = 8, 1e-5
SKIPPED = 2
"""Updates at the beginning of every turn that are not measured."""

Timing = tuple[float, float]
"""Processor seconds of one update, and the share of its wall time that sampling took."""


class Clock(TrainerCallback):  # type: ignore[misc]
    """From one update's end to the next one's."""

    def __init__(self, run: Any) -> None:
        self.timings: list[Timing] = []
        self._sampling, self._wall, self._processor = 0.0, time.perf_counter(), time.process_time()
        generate = run._generate

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            out = generate(*args, **kwargs)
            self._sampling += time.perf_counter() - start
            return out

        run._generate = timed

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        self.timings.append((processor - self._processor, self._sampling / (wall - self._wall)))
        self._wall, self._processor, self._sampling = wall, processor, 0.0


def measured(callback: Any) -> list[float]:
    """Processor seconds of every call of the monitor from now on."""
    seconds: list[float] = []

    def timing(plain: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            out = plain(*args, **kwargs)
            seconds.append(time.process_time() - start)
            return out

        return timed

    for name in ("_evidence", "on_pre_optimizer_step"):
        setattr(callback, name, timing(getattr(callback, name)))
    return seconds


def trl_turn(method: str | None, monitor: bool, updates: int, shares: list[float]) -> list[Timing]:
    """One run of TRL; the share of time in the monitor is added to `shares`."""
    with tempfile.TemporaryDirectory() as folder:
        run = trainer(
            folder,
            method,
            model=model(**LLAMA),
            data=prompts(256),
            max_steps=updates + SKIPPED,
            per_device_train_batch_size=PROMPTS * RESPONSES,
            gradient_accumulation_steps=1,
            num_generations=RESPONSES,
            max_completion_length=TOKENS,
            temperature=1.0,
        )
        clock = Clock(run)
        run.add_callback(clock)
        spent: list[float] = []
        if monitor:
            callback = MonitorCallback(run)
            spent = measured(callback)
            run.add_callback(callback)
        run.train()
        if monitor:
            shares.append(sum(spent) / sum(seconds for seconds, _ in clock.timings))
        return clock.timings[SKIPPED:]


def our_turn(updates: int, llama: bool, method: str) -> list[Timing]:
    """One cell: the same Llama on sums, or the default."""
    settings: dict[str, Any] = {"prompts": PROMPTS, "responses": RESPONSES, "steps": 10_000, "eval_every": 10_000}
    with tempfile.TemporaryDirectory() as folder:
        if llama:
            model(**LLAMA).save_pretrained(folder)
            character_tokenizer().save_pretrained(folder)
            settings |= {"task": "arithmetic(terms=2,largest=9)", "model": "llama@0"}
        config = CellConfig(method=method, staleness=0, seed=0, **settings)
        cell = build_trainer(config, start=Path(folder)) if llama else build_trainer(config)
        timings = []
        for _ in range(updates + SKIPPED):
            wall, processor = time.perf_counter(), time.process_time()
            cell.advance()
            sampling = float(cell.recorder.tables[STEPS_FILE].row(-1)["seconds_sample"])
            timings.append((time.process_time() - processor, sampling / (time.perf_counter() - wall)))
    return timings[SKIPPED:]


class ModelTurns:
    """Turns of a released model: each trains it from its start, and then evaluates it on held-out prompts.

    Args:
        model: As for `--model`.
        updates: Measured updates of a turn.

    Attributes:
        rewards: By turn, the mean of its last three batches and the sampled held-out reward after them.
    """

    def __init__(self, model: str, updates: int) -> None:
        self.folder, self.updates = model_folder(model), updates + SKIPPED
        self.rewards: dict[str, list[tuple[float, float]]] = defaultdict(list)
        sizes: dict[str, Any] = {"prompts": MODEL_PROMPTS, "responses": RESPONSES, "lr": MODEL_RATE, "lr_warmup": 0}
        task = "quiz(largest=5,shots=1)"
        self.config = CellConfig(method="clip", staleness=0, seed=0, model="model@0", task=task, **sizes)
        self.task = open_task(self.config, self.folder)

    def ours(self, method: str) -> list[Timing]:
        """Our learner, without the evaluations of a cell."""
        timings, rewards = list[Timing](), list[float]()
        with closing(build_trainer(replace(self.config, method=method), start=self.folder)) as cell:
            for update in range(self.updates):
                wall, processor = time.perf_counter(), time.process_time()
                given = cell.source.next_batch(update)
                cell.learner.update(given.batch, update)
                timings.append((time.process_time() - processor, given.seconds_sample / (time.perf_counter() - wall)))
                rewards.append(given.sampled_reward)
            self._judge(f"our learner, {method}", rewards, cell.policy)
        return timings[SKIPPED:]

    def trl(self) -> list[Timing]:
        """TRL's trainer on the same prompts in the same order, with the task's own scores."""
        network, tokenizer = read_network(self.folder), read_tokenizer(self.folder)
        batches = [self.task.training_prompts(0, update, MODEL_PROMPTS) for update in range(self.updates)]
        rows = [{"prompt": tokenizer.decode(row[row != self.task.pad])} for batch in batches for row in batch]
        rewards = list[float]()

        def reward(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
            found = [self._score(*pair) for pair in zip(prompts, completions, strict=True)]
            rewards.append(statistics.fmean(found))
            return found

        with tempfile.TemporaryDirectory() as folder:
            settings = config(
                folder,
                max_steps=self.updates,
                per_device_train_batch_size=MODEL_PROMPTS * RESPONSES,
                gradient_accumulation_steps=1,
                num_generations=RESPONSES,
                max_completion_length=self.task.max_response,
                temperature=1.0,
                learning_rate=MODEL_RATE,
                shuffle_dataset=False,
                gradient_checkpointing=False,
            )
            data = Dataset.from_list(rows)
            run = GRPOTrainer(
                model=network, args=settings, reward_funcs=reward, train_dataset=data, processing_class=tokenizer
            )
            run.remove_callback(PrinterCallback)
            clock = Clock(run)
            run.add_callback(clock)
            run.train()
        self._judge("TRL", rewards, CausalPolicy(network, self.task.pad))
        return clock.timings[SKIPPED:]

    def _score(self, prompt: str, completion: str) -> float:
        a, b = prompt.strip().splitlines()[-1].rstrip("=").split("+")
        return self.task.source.score(Item(prompt, str(int(a) + int(b)), {}), completion)

    def _judge(self, name: str, rewards: list[float], policy: Policy) -> None:
        self.rewards[name].append((statistics.fmean(rewards[-3:]), evaluate(policy, self.task, 64).sampled_reward))

    def turns(self) -> dict[str, Callable[[int], list[Timing]]]:
        """What takes turns."""
        ours = {f"our learner, {name}": lambda _, name=name: self.ours(name) for name in ("clip", "vcpo")}
        return {"TRL": lambda _: self.trl(), **ours}

    def report(self) -> None:
        """Print the rewards, means over rounds."""
        for name, pairs in self.rewards.items():
            last, held_out = (statistics.fmean(values) for values in zip(*pairs, strict=True))
            print(f"{name:32} reward of the last batches {last:.2f}, held out {held_out:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=8)
    parser.add_argument("--model", default="")
    options = parser.parse_args()
    shares: list[float] = []
    released = ModelTurns(options.model, options.updates) if options.model else None
    turns: dict[str, Callable[[int], list[Timing]]] = {
        "our default cell, vcpo": lambda n: our_turn(n, llama=False, method="vcpo"),
        "our learner, the Llama, vcpo": lambda n: our_turn(n, llama=True, method="vcpo"),
        "TRL": lambda n: trl_turn(None, False, n, shares),
        "TRL with clip": lambda n: trl_turn("clip", False, n, shares),
        "TRL with vcpo(baseline=group)": lambda n: trl_turn("vcpo(baseline=group)", False, n, shares),
        "TRL with vcpo": lambda n: trl_turn("vcpo", False, n, shares),
        "TRL with the monitor": lambda n: trl_turn(None, True, n, shares),
    }
    if released:
        turns = released.turns()
    timings: dict[str, list[Timing]] = defaultdict(list)
    for _ in range(options.rounds):
        for name, turn in turns.items():
            timings[name] += turn(options.updates)
    report(timings)
    if released:
        released.report()
    else:
        print(f"share of time in the monitor: {statistics.median(shares):.2%}")


def report(timings: dict[str, list[Timing]]) -> None:
    plain = statistics.median(seconds for seconds, _ in timings["TRL"])
    print(f"{'':32} ms per update   times TRL   share of sampling")
    for name, pairs in timings.items():
        seconds = statistics.median(one for one, _ in pairs)
        sampling = statistics.median(part for _, part in pairs)
        print(f"{name:32} {1e3 * seconds:13.1f} {seconds / plain:11.2f} {sampling:19.0%}")


if __name__ == "__main__":
    main()
