"""The settings that all cells of a grid share, each written once: field, default, limits and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vcpo_bench.bench.cells import defaults
from vcpo_bench.errors import UsageError
from vcpo_bench.records import Level

Replay = Literal["off", "r2", "r3"]
"""Which routes a mixture of experts replays; see `CellSettings.replay`."""


class LanguageModelSettings(BaseModel):
    """Settings of cells that train a language model; the built-in tiny policy leaves them at their defaults.

    Attributes:
        dtype: Dtype in which a language model computes; trained weights are float32 in either case.
        lora: Rank of the adapters that are trained instead of all weights; 0: all weights.
        chat: Whether prompts use the tokenizer's chat template, where it has one.
        learner: Canonical learner expression.
        sampler: Canonical sampler expression.
        max_response: Longest response in tokens; 0: what the task suggests.
        micro_tokens: Most positions in one pass of the learner, padding included; 0: no limit.
        checkpointing: Whether activations are recomputed in the backward pass instead of kept.
        shards: Processes, one per GPU, over which FSDP2 spreads parameters, gradients and optimizer of a cell; sums are
            rounded differently for each number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    dtype: Literal["float32", "bfloat16"] = defaults.DTYPE
    lora: int = Field(default=defaults.LORA, ge=0)
    chat: bool = defaults.CHAT
    learner: str = defaults.LEARNER
    sampler: str = defaults.SAMPLER
    max_response: int = Field(default=defaults.MAX_RESPONSE, ge=0)
    micro_tokens: int = Field(default=defaults.MICRO_TOKENS, ge=0)
    checkpointing: bool = defaults.CHECKPOINTING
    shards: int = Field(default=defaults.SHARDS, ge=1)


class CellSettings(LanguageModelSettings):
    """What all cells of a grid have in common. Immutable.

    Attributes:
        steps: Optimizer updates per cell.
        prompts: Prompts per update (P).
        responses: Responses per prompt (G).
        eval_every: Updates between two evaluations on the held-out prompts.
        record: Record level: how much is recorded.
        stop: Detector that ends the cell early, as its `bench.training.step_observer.ObserverFactory` reads it; empty:
            none. It decides how many updates are made, so a cell that may be stopped is another cell than one that may
            not.
        optimizer: Canonical optimizer expression.
        policy: Canonical expression of the built-in policy; with a language model it is the default.
        replay: Whose routes a mixture of experts uses when the learner scores: `off`: its own; `r2`: those that the
            learner computed when the batch had just been sampled; `r3`: those of the sampler.
        weight_decay: Decoupled weight decay.
        lr_warmup: Updates over which the learning rate rises linearly to its full value; 0: it is constant.
    """

    steps: int = Field(default=defaults.STEPS, ge=1)
    prompts: int = Field(default=defaults.PROMPTS, ge=1)
    responses: int = Field(default=defaults.RESPONSES, ge=1)
    eval_every: int = Field(default=10, ge=1)
    record: Level = defaults.RECORD
    stop: str = ""
    optimizer: str = defaults.OPTIMIZER
    policy: str = defaults.POLICY
    replay: Replay = defaults.REPLAY
    weight_decay: float = Field(default=defaults.WEIGHT_DECAY, ge=0)
    lr_warmup: int = Field(default=defaults.LR_WARMUP, ge=0)

    def changed_for_language_models(self) -> list[str]:
        """Names of the language-model settings that differ from their defaults."""
        return [name for name in LanguageModelSettings.model_fields if name in self.model_dump(exclude_defaults=True)]

    def without_language_model(self) -> CellSettings:
        """The same settings with those of language models at their defaults."""
        return self.model_copy(update=LanguageModelSettings().model_dump())


_FLAGS = {"chat": "chat_template"}
"""Settings whose flag has another name."""


def flag_of(setting: str) -> str:
    """The command-line flag of a setting: `--micro-tokens`."""
    return "--" + _FLAGS.get(setting, setting).replace("_", "-")


def read_settings(values: Mapping[str, Any]) -> CellSettings:
    """The settings among the values of a command line.

    Args:
        values: Values by parameter name (`micro_tokens`). Other parameters are ignored; settings without a value keep
            their defaults.

    Raises:
        UsageError: A value is not legal; the message names its flag.
    """
    names = {name: _FLAGS.get(name, name) for name in CellSettings.model_fields}
    try:
        return CellSettings(**{name: values[parameter] for name, parameter in names.items() if parameter in values})
    except ValidationError as error:
        problem = error.errors()[0]
        rule = problem["msg"].replace("Input should be", "must be")
        raise UsageError(f"{flag_of(str(problem['loc'][0]))} {problem['input']}: {rule}") from error
