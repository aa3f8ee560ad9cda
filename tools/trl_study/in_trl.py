"""One arm in TRL's `GRPOTrainer` with our method in it, on the same start policy, prompts, rewards and evaluation."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from datasets import Dataset
from ours import flat
from settings import EVAL_EVERY, LEARNING_RATE, PROMPTS, RESPONSES, TASK, Arm, Run, success
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from transformers.utils.logging import disable_progress_bar, set_verbosity_error
from trl import GRPOConfig, GRPOTrainer

from vcpo_bench.adapters.trl import with_method
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.trajectories import Rollout

OURS = {"ess_ratio", "step_scale", "lag_mean", "lag_max"}

set_verbosity_error()
disable_progress_bar()


def train(arm: Arm, start: Path, batches: Sequence[Rollout] = (), score_tokens: bool = False) -> Run:
    """Train one arm from the policy in `start`.

    Args:
        arm: What to train.
        start: Folder of the start policy.
        batches: What our harness sampled: TRL trains on it, handed over by its own `rollout_func`, and the weights are
            kept after each update. Empty: TRL samples by itself.
        score_tokens: Judge what was sampled as our harness does, special tokens included; else the text that TRL hands
            to reward functions, which is without them.
    """
    began = perf_counter()
    run = Run()
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(start, padding_side="left")
    task = BoundTask(text_task(TASK), tokenizer)
    policy = CausalPolicy(model, task.pad)
    with tempfile.TemporaryDirectory() as folder:
        trainer = with_method(GRPOTrainer, arm.method, lag=f"fifo({arm.lag})")(
            model=model,
            args=_config(arm, folder, task.max_response),
            reward_funcs=_reward(task, score_tokens),
            train_dataset=_prompts(arm, task),
            processing_class=tokenizer,
            rollout_func=Replay(batches, task) if batches else None,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(Recorder(run, policy, task, keep_weights=bool(batches)))
        trainer.train()
    run.seconds = perf_counter() - began
    return run


def start_weights(start: Path) -> torch.Tensor:
    """`[D]` the weights of the start policy."""
    return flat(AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32).parameters())


def _config(arm: Arm, folder: str, length: int) -> GRPOConfig:
    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=1,
        max_steps=arm.updates,
        per_device_train_batch_size=PROMPTS * RESPONSES,
        gradient_accumulation_steps=1,
        num_generations=RESPONSES,
        max_completion_length=length,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_grad_norm=1.0,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        seed=arm.seed,
    )


def _prompts(arm: Arm, task: BoundTask) -> Dataset:
    """The prompts of our harness in its order, as text with the right answer."""
    items = [
        task.source.item(arm.seed, batch, index) for batch in range(arm.updates + arm.lag) for index in range(PROMPTS)
    ]
    rows = [{"prompt": item.prompt, "answer": item.answer} for item in items]
    return Dataset.from_list(rows)


def _reward(task: BoundTask, score_tokens: bool) -> Any:
    def reward(
        prompts: Sequence[str],
        completions: Sequence[str],
        completion_ids: Sequence[list[int]],
        answer: Sequence[str],
        **_: Any,
    ) -> list[float]:
        texts = completions
        if score_tokens:
            ends = [ids[:-1] if ids[-1] == task.eos else ids for ids in completion_ids]
            texts = [task.tokenizer.decode(ids, clean_up_tokenization_spaces=False) for ids in ends]
        items = [Item(prompt, right, {}) for prompt, right in zip(prompts, answer, strict=True)]
        return [task.source.score(item, text) for item, text in zip(items, texts, strict=True)]

    return reward


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Reads TRL's own log after each update, and evaluates as our harness does."""

    def __init__(self, run: Run, policy: CausalPolicy, task: BoundTask, keep_weights: bool) -> None:
        self.run, self.policy, self.task, self.keep_weights = run, policy, task, keep_weights

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The start policy."""
        self._evaluate(0)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """After the optimizer step."""
        if self.keep_weights:
            self.run.weights.append(flat(self.policy.network.parameters()))
        if state.global_step % EVAL_EVERY == 0:
            self._evaluate(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        """One row per update."""
        if "vcpo_bench/step_scale" not in logs:
            return
        values = {name: float(logs[f"vcpo_bench/{name}"]) for name in OURS}
        own = {"batch_reward": float(logs["reward"]), "grad_norm": float(logs["grad_norm"])}
        self.run.updates.append({"update": float(state.global_step), **own, **values})

    def _evaluate(self, done: int) -> None:
        training = self.policy.network.training
        self.run.evals.append((done, success(self.policy, self.task)))
        self.policy.network.train(training)


class Replay:
    """TRL's documented `rollout_func`: hands over batches that our harness sampled, with their log-probabilities."""

    def __init__(self, batches: Sequence[Rollout], task: BoundTask) -> None:
        self.batches, self.task = iter(batches), task

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[list[Any]]]:
        """One batch, in lists of one entry per response."""
        rollout = next(self.batches)
        ids = [self.task.tokenizer(prompt, add_special_tokens=False)["input_ids"] for prompt in prompts]
        kept = rollout.mask
        return {
            "prompt_ids": ids,
            "completion_ids": [row[here].tolist() for row, here in zip(rollout.responses, kept, strict=True)],
            "logprobs": [row[here].tolist() for row, here in zip(rollout.logp, kept, strict=True)],
        }
