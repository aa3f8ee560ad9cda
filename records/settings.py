"""The settings of a cell, each written once. Types, flags, checks, units and comparability follow from these tables."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from vcpo_bench.records.column import Level
from vcpo_bench.records.layout import KEY_PATTERN, SYNCHRONOUS
from vcpo_bench.records.setting import Setting, Settings, settings_of

# fmt: off


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Settings):
    """What only cells that train a language model have; others leave these at their defaults."""

    dtype: Annotated[Literal["float32", "bfloat16"], Setting(
        unit="name", meaning="precision in which a language model computes; trained weights are float32 in either case",
        help="Precision of forward and backward passes: float32 or bfloat16.", metavar="TYPE", apart="noted",
    )] = "float32"
    lora: Annotated[int, Setting(
        unit="rank", meaning="rank of the adapters; 0: all weights",
        help="Rank of the LoRA adapters; 0 trains all weights.", apart="budget",
    )] = 0
    chat: Annotated[bool, Setting(
        unit="yes/no", meaning="prompts use the chat template",
        help="Use the tokenizer's chat template, if it has one.", parameter="chat_template", apart="budget",
    )] = True
    sampler: Annotated[str, Setting(
        unit="expression", meaning="what drew the responses",
        help="Sampler, such as torch(slots=64) or vllm; vcpo-bench ls samplers lists them.", apart="noted",
    )] = "torch"
    max_response: Annotated[int, Setting(
        unit="tokens", meaning="longest response; 0: what the task suggests",
        help="Longest response, in tokens; 0 means the task's limit.", apart="budget",
    )] = 0
    micro_tokens: Annotated[int, Setting(
        unit="tokens", meaning="most positions in one pass of the learner, padding included; 0: no limit",
        help="Most tokens in one forward and backward pass, padding included; 0 means no limit.", with_model=8192,
    )] = 0
    trainer: Annotated[str, Setting(
        unit="expression", meaning="what trained the cell: the loop of this project, or another trainer",
        help="Trainer, such as own or trl(processes=2); vcpo-bench ls trainers lists them.",
    )] = "own"
    checkpointing: Annotated[bool, Setting(
        unit="yes/no", meaning="activations were recomputed in the backward pass instead of kept",
        help="Activation checkpointing: less memory, slower updates.",
    )] = False


@dataclass(frozen=True, kw_only=True)
class CellSettings(LanguageModelSettings):
    """What all cells of a grid have in common."""

    steps: Annotated[int, Setting(
        unit="updates", meaning="optimizer updates asked for",
        help="Optimizer updates per cell.", least=1, apart="budget", run=200, with_model=60,
    )] = 300
    prompts: Annotated[int, Setting(
        unit="count", meaning="prompts per update", help="Prompts per update.", least=1, apart="budget", run=8,
    )] = 16
    responses: Annotated[int, Setting(
        unit="count", meaning="responses per prompt", help="Responses per prompt.", least=1, apart="budget",
    )] = 8
    eval_every: Annotated[int, Setting(
        unit="updates", meaning="updates between two evaluations on the held-out prompts",
        help="Updates between two evaluations.", least=1, apart="noted",
    )] = 10
    eval_prompts: Annotated[int, Setting(
        unit="count", meaning="held-out prompts of an evaluation, two responses each",
        help="Held-out prompts of an evaluation, each answered twice.", least=1, apart="noted", run=128, with_model=64,
    )] = 256
    record: Annotated[Level, Setting(
        unit="level", meaning="how much was recorded: basic, diagnostics or full",
        help="How much to record: basic (per update), diagnostics (also per trajectory) or full (also per token).",
        metavar="LEVEL",
    )] = "basic"
    stop: Annotated[str, Setting(
        unit="expression", meaning="detector that may end the cell early, and so decides how many updates are made",
        apart="noted",
    )] = ""
    optimizer: Annotated[str, Setting(
        unit="expression", meaning="what turns a gradient into a step",
        help="Optimizer, such as adamw(beta2=0.98) or muon; vcpo-bench ls optimizers lists them.", apart="budget",
    )] = "adamw"
    policy: Annotated[str, Setting(
        unit="expression", meaning="built-in policy that was trained, where no language model was",
        help="Built-in policy; vcpo-bench ls policies lists them.", apart="budget",
    )] = "tiny"
    weight_decay: Annotated[float, Setting(
        unit="1", meaning="decoupled weight decay", help="Decoupled weight decay.", least=0, apart="budget",
    )] = 0.0
    lr_warmup: Annotated[int, Setting(
        unit="updates", meaning="updates over which the learning rate rises linearly; 0: it is constant",
        help="Updates of linear learning-rate warmup.", apart="budget", with_model=5,
    )] = 20  # a cold AdamW at a high rate can ruin a policy in its first steps, which has nothing to do with lag

    def changed_for_language_models(self) -> list[str]:
        """Names of the language-model settings that differ from their defaults."""
        return [name for name in self.changed() if name in settings_of(LanguageModelSettings)]

    def without_language_model(self) -> Self:
        """The same settings with those of language models at their defaults."""
        return replace(self, **LanguageModelSettings().values())


@dataclass(frozen=True, kw_only=True)
class CellFields(CellSettings):
    """Everything that changes the numbers or the records of one training run; `bench.cells.config` gives it a key.

    The flags of these settings take lists, or files whose hash is recorded (`commands.support.run_options`).
    """

    method: Annotated[str, Setting(
        unit="expression", meaning="method with its parameters and parts", parameter="methods",
    )]
    staleness: Annotated[int, Setting(unit="updates", meaning="largest policy lag that was asked for")]
    seed: Annotated[int, Setting(unit="index", meaning="seed of every random stream of the run", parameter="seeds")]
    task: Annotated[str, Setting(unit="expression", meaning="task with its parameters")] = "walk"
    regime: Annotated[str, Setting(unit="expression", meaning="how the lag arises")] = SYNCHRONOUS
    lr: Annotated[float, Setting(
        unit="1", meaning="learning rate of the optimizer before the method's step scale", above=0, with_model=1e-5,
    )] = 3e-4
    series: Annotated[str, Setting(
        unit="key", meaning="cell whose step scales an `lr-matched` or `lr-shuffled` control borrows; else empty",
        pattern=rf"({KEY_PATTERN})?",
    )] = ""
    start: Annotated[str, Setting(
        unit="hash", meaning="file with the start policy; empty: the one that ships with the task", apart="budget",
    )] = ""
    parent: Annotated[str, Setting(
        unit="key", meaning="cell this one was forked from, whose updates before `fork_step` it shares; else empty",
        pattern=rf"({KEY_PATTERN})?",
    )] = ""
    fork_step: Annotated[int, Setting(unit="updates", meaning="updates done when it was forked", apart="noted")] = 0
    model: Annotated[str, Setting(
        unit="name and hash", meaning="language model that was trained; empty: the built-in policy", apart="budget",
    )] = ""
    plugins: Annotated[str, Setting(
        unit="hash", meaning="plug-in files the cell depends on, so that an edited one makes another cell; empty: none",
    )] = ""
    device: Annotated[Literal["cpu", "cuda"], Setting(
        unit="name", meaning="kind of device that computed", apart="noted",
    )] = "cpu"
# fmt: on


SETTINGS = settings_of(CellFields)
"""Every setting of a cell by name, in the order in which `cell.json` holds them."""


def read_settings(values: Mapping[str, Any]) -> CellSettings:
    """The settings among the values of a command line.

    Args:
        values: Values by parameter name (`micro_tokens`). Other parameters are ignored; settings without a value keep
            their defaults.

    Raises:
        UsageError: A value is not legal; the message names its flag.
    """
    known = settings_of(CellSettings)
    return CellSettings(**{name: values[one.parameter] for name, one in known.items() if one.parameter in values})
