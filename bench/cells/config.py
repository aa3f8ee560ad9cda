"""A cell: one training run, fully described by its configuration, and the key under which its results are kept."""

from __future__ import annotations

import hashlib
import json
import re
from textwrap import shorten
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vcpo_bench.records import RULES_VERSION, Level

NUMERIC_BACKEND = "torch-cpu-float32"
"""What computes the numbers of a cell that says nothing else: `dtype` and `device` are fields of their own."""


class CellConfig(BaseModel):
    """Everything that changes the numbers or the records of one training run. Immutable.

    Attributes:
        method: Canonical method expression (`Method.canonical`).
        staleness: Largest lag k, in optimizer updates.
        seed: Seed of every random stream of the run.
        task: Canonical task expression.
        regime: How the lag comes about: canonical regime expression.
        lr: Learning rate of AdamW before the method's step scale.
        steps: Optimizer updates.
        prompts: Prompts per update (P).
        responses: Responses per prompt (G).
        eval_every: Updates between two evaluations on the held-out prompts.
        record: How much is recorded.
        series: Key of the cell whose step scales an `lr-matched` or `lr-shuffled` control borrows, else empty.
        start: Hash of the file with the start policy; empty: the one that ships with the task.
        parent: Key of the cell this one was forked from, whose updates before `fork_step` are its own; else empty.
        fork_step: Updates done when it was forked.
        stop: What ends the cell early, as its `bench.training.step_observer.ObserverFactory` reads it; empty: nothing
            does. It decides how many updates are made, so a cell that may be stopped is another cell than one that may
            not.
        model: Language model that is trained: name of its folder and hash of what is in it; empty: the embedded policy.
        dtype: What a language model computes in; its trained weights are float32 in either case.
        lora: Rank of the adapters that are trained instead of all weights; 0: all weights.
        chat: Whether prompts are put into the tokenizer's chat template, where it has one.
        sampler: How a language model is sampled: canonical sampler expression.
        max_response: Longest response in tokens; 0: what the task suggests.
        micro_tokens: Most positions of one pass of the learner, padding included; 0: no limit.
        checkpointing: Whether activations are computed again in the backward pass instead of kept.
        plugins: Digests of the plug-in files that its method, task, regime and sampler come from
            (`plugin_files.plugins_of`), so that an edited one makes another cell; empty: everything ships or is
            installed.
        weight_decay: Of AdamW, decoupled.
        device: What kind of device computes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: str
    staleness: int = Field(ge=0)
    seed: int = Field(ge=0)
    task: str = "chain"
    regime: str = "fifo"
    lr: float = Field(default=3e-4, gt=0)
    steps: int = Field(default=300, ge=1)
    prompts: int = Field(default=16, ge=1)
    responses: int = Field(default=8, ge=1)
    eval_every: int = Field(default=10, ge=1)
    record: Level = "basic"
    series: str = ""
    start: str = ""
    parent: str = ""
    fork_step: int = Field(default=0, ge=0)
    stop: str = ""
    model: str = ""
    dtype: Literal["float32", "bfloat16"] = "float32"
    lora: int = Field(default=0, ge=0)
    chat: bool = True
    sampler: str = "torch"
    max_response: int = Field(default=0, ge=0)
    micro_tokens: int = Field(default=0, ge=0)
    checkpointing: bool = False
    plugins: str = ""
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    device: Literal["cpu", "cuda"] = "cpu"

    @property
    def label(self) -> str:
        """One line for people: `vcpo lag 16 seed 0 chain lr 3e-4`, after the regime where it is not the default."""
        regime = (
            ""
            if self.regime == CellConfig.model_fields["regime"].default
            else f"{shorten(self.regime, 40, placeholder='...')} "
        )
        forked = f" forked at {self.fork_step}" if self.parent else ""
        model = f" {self.model.partition('@')[0]}" if self.model else ""
        lr = short_number(self.lr)
        return f"{self.method} {regime}lag {self.staleness} seed {self.seed} {self.task}{model} lr {lr}{forked}"

    def key(self, method_version: int) -> str:
        """Name of the cell's folder: a readable slug and ten hex digits of the hash of all that defines it.

        Only fields that differ from their defaults are hashed, so that a new field with a default moves no key.
        """
        defining: dict[str, Any] = {
            "config": self.model_dump(exclude_defaults=True),
            "method_version": method_version,
            "rules_version": RULES_VERSION,
            "backend": NUMERIC_BACKEND,
        }
        digest = hashlib.sha256(json.dumps(defining, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        method = re.sub(r"[^a-z0-9.+-]+", "_", self.method.lower()).strip("_")[:40]
        task = re.sub(r"[^a-z0-9.-]+", "_", self.task.lower()).strip("_")[:20]
        lag = re.sub(r"[^a-z0-9.-]+", "_", self.regime).strip("_")[:24] + str(self.staleness)
        forked = f"-fork{self.fork_step}" if self.parent else ""
        return f"{task}-{method}-{lag}-lr{short_number(self.lr)}-seed{self.seed}{forked}-{digest[:10]}"


def short_number(value: float) -> str:
    """`0.0003` as `3e-4`: the shortest text that reads back as the same number, without padded exponents."""
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    plain = re.sub(r"e([+-])0*(\d+)$", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", text)
    if "e" not in plain and 0 < abs(value) < 1e-2:
        mantissa, exponent = f"{value:.15e}".split("e")
        plain = f"{float(mantissa):g}e{int(exponent)}"
    return plain if float(plain) == value else repr(value)
