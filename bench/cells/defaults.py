"""The defaults of what defines a cell, each written once: for the configuration and for the command line."""

from __future__ import annotations

from typing import Literal

from vcpo_bench.records import SYNCHRONOUS, Level

TASK = "walk"
REGIME = SYNCHRONOUS
LR = "3e-4"
"""As a user types it."""
STEPS = 300
PROMPTS = 16
RESPONSES = 8
RECORD: Level = "basic"
OPTIMIZER = "adamw"
POLICY = "tiny"
REPLAY: Literal["off"] = "off"
WEIGHT_DECAY = 0.0
LR_WARMUP = 20
"""A cold AdamW at a high rate can ruin a policy in its first steps, which has nothing to do with lag."""
DTYPE: Literal["float32"] = "float32"
LORA = 0
CHAT = True
LEARNER = "torch"
SAMPLER = "torch"
MAX_RESPONSE = 0
MICRO_TOKENS = 0
CHECKPOINTING = False
SHARDS = 1
DEVICE: Literal["cpu"] = "cpu"
