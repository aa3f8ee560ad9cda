"""The language model of a checkpoint as lm-eval's own `HFLM`: same weights, tokenizer and chat template."""

from __future__ import annotations

from dataclasses import replace

import torch
from lm_eval.models.huggingface import HFLM

from vcpo_bench.bench.cells.model_source import recorded_model
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.outside.lm_eval.checkpoints import KeptCheckpoint, load_trained
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.tasks.text.bound import BoundTask

ROWS = 32
"""Sequences scored or generated at once."""


class CheckpointLM(HFLM):  # type: ignore[misc]  # lm-eval ships no types
    """A trained language model.

    Args:
        policy: The policy.
        task: Its task, for the tokenizer, for whether prompts go through its chat template, and for the response length
            if an lm-eval task sets none.
    """

    def __init__(self, policy: CausalPolicy, task: BoundTask) -> None:
        autocast = None if policy.dtype == torch.float32 else policy.dtype
        super().__init__(
            pretrained=policy.network,
            tokenizer=task.tokenizer,
            backend="causal",
            batch_size=ROWS,
            mixed_precision_dtype=autocast,
        )
        self.chat = task.chat
        self._longest, self._source = task.max_response, task.source
        self._own = {item.prompt: item for item in task.source.items("held_out")}

    @property
    def max_gen_toks(self) -> int:
        """Response length for tasks that set none."""
        return self._longest

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """As HFLM does; before the cell's own questions with the system prompt and the examples it was trained with."""
        own = self._own.get(chat_history[-1]["content"])
        turns = self._source.conversation(own) if own else chat_history
        text: str = super().apply_chat_template(turns, add_generation_prompt)
        return text


def open_task_of(checkpoint: KeptCheckpoint, model: str) -> BoundTask:
    """The task of a checkpoint's cell, in the tokens of its model.

    Raises:
        UsageError: As `open_checkpoint`.
    """
    task = open_task(checkpoint.config, recorded_model(checkpoint.key, checkpoint.config.model, model))
    assert isinstance(task, BoundTask)
    return task


def open_checkpoint(checkpoint: KeptCheckpoint, model: str, device: str) -> CheckpointLM:
    """The language model of a checkpoint.

    Raises:
        UsageError: `model` is missing or is another one, or the checkpoint cannot be read.
    """
    folder = recorded_model(checkpoint.key, checkpoint.config.model, model)
    config = replace(checkpoint.config, checkpointing=False)
    task = open_task_of(checkpoint, model)
    policy = open_policy(config, task, folder, device)
    load_trained(checkpoint, policy)
    assert isinstance(policy, CausalPolicy)
    return CheckpointLM(policy, task)
