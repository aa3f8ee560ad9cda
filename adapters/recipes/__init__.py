"""What to set in a trainer to train with a method there: its own settings, our adapter, or why neither will do."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.adapters import prime_rl, skyrl, slime
from vcpo_bench.adapters.hook import Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.locality import locality_of, of_the_learner
from vcpo_bench.adapters.recipes.rollout_correction import decoupled, in_bypass_mode
from vcpo_bench.adapters.verl.policy_loss import HOOK as VERL
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method, parse_method
from vcpo_bench.naming.grammar import unknown_name
from vcpo_bench.naming.plugins import plugin_files

TRAINERS = ("trl", "verl", "prime-rl", "slime", "skyrl", "nemo-rl", "areal")
HOOKS: dict[str, tuple[Hook, str]] = {
    "prime-rl": (prime_rl.HOOK, "token-mean"),
    "slime": (slime.HOOK, "seq-mean-token-mean(empty=counted)"),
    "skyrl": (skyrl.HOOKS["token_mean"], "token-mean"),
}
"""Trainers whose hook sees single rows, and the averaging that its division makes."""


class Recipe(NamedTuple):
    """How to get a method in a trainer.

    Attributes:
        way: `own settings`, `adapter` or `not possible`.
        lines: What to set, or one sentence that says why not.
        exact: Expression of what these settings do, which may differ in anchor, clamp and averaging.
    """

    way: str
    lines: tuple[str, ...]
    exact: str


class _Own(NamedTuple):
    trainer: str
    compared: str
    expression: str
    settings: str


@cache
def own_settings() -> tuple[_Own, ...]:
    """The table of trainers' own settings; each names the reference numbers (`tests/golden`) that show it."""
    with Path(__file__).with_name("own_settings.tsv").open(encoding="utf-8", newline="") as table:
        return tuple(_Own(*row) for row in list(csv.reader(table, delimiter="\t"))[1:])


def recipe(method: Method, trainer: str, under_lag: bool = False) -> Recipe:
    """What to set.

    Args:
        method: The method.
        trainer: One of `TRAINERS`.
        under_lag: Leave out settings whose ratio is to the policy at the start of a batch, which cannot see a lag.

    Raises:
        UsageError: It is none of them.
    """
    check_trainer(trainer)
    bypassing = in_bypass_mode(method) if trainer == "verl" else None
    if bypassing is not None:
        return Recipe("own settings", *bypassing)
    rest, correction, parts = decoupled(method) if trainer == "verl" else (method, (), ())
    for own in own_settings():
        blind = under_lag and "anchor=proximal" in own.expression and not parts
        by_row = "+token-mean" not in own.expression and any(part.slot == "mask" for part in parts)
        if own.trainer == trainer and not blind and not by_row:
            loss = parse_method(own.expression)
            if _loss_of(loss) == _loss_of(rest):
                exact = replace(loss, extras=(*parts, *loss.extras)).canonical if parts else own.expression
                return Recipe("own settings", (*correction, own.settings), exact)
    if trainer in HOOKS:
        hook, averaging = HOOKS[trainer]
        named = any(part.slot == "aggregation" for part in method.extras)
        method = method if named else parse_method(f"{method.canonical}+{averaging}")
        against = next(reasons_against(method, hook), None)
    else:
        against = next(_against(method, trainer), None)
    if against is not None:
        return Recipe("not possible", (f"not possible, because {against}",), "")
    return Recipe("adapter", (*_loading(method, trainer), *_adapter_lines(method, trainer)), method.canonical)


def check_trainer(name: str) -> None:
    """Raise `UsageError` for a name that is not one of `TRAINERS`."""
    if name not in TRAINERS:
        raise UsageError(unknown_name("trainer", name, TRAINERS))


def _loss_of(method: Method) -> str:
    """Its loss alone, relative to whatever anchor: without advantage, averaging, step rule and clamp."""
    kept = tuple(part for part in method.extras if part.slot not in ("baseline", "aggregation", "step"))
    plain: dict[str, Any] = {field.name: field.default for field in fields(method) if field.name in ("anchor", "clamp")}
    return replace(method, extras=kept, **plain).canonical if all(part.slot != "step" for part in method.extras) else ""


def _against(method: Method, trainer: str) -> Iterator[str]:
    """Why the method cannot be had in TRL, verl, or a trainer without a place for it."""
    locality = locality_of(method)
    yield from of_the_learner(locality)
    if trainer in ("nemo-rl", "areal"):
        yield "there is no adapter for this trainer, and no setting of its own was shown to be this method"
    if trainer == "verl" and locality.acts_on_gradient:
        yield "it compares whole gradients, which verl shards"


def _loading(method: Method, trainer: str) -> tuple[str, ...]:
    """What makes the plug-in files of a method known there; nothing for what ships."""
    files = plugin_files(method.plugins)
    if files and trainer in ("trl", "skyrl"):
        return ("from vcpo_bench.methods import load_plugin", *(f'load_plugin("{file}")' for file in files))
    point = "announce it in a package of yours as an entry point of the group vcpo_bench.methods"
    return tuple(f"# the adapter does not load {file}: {point}" for file in files)


def _adapter_lines(method: Method, trainer: str) -> tuple[str, ...]:
    text = method.canonical
    if trainer == "trl":
        made = f'Trainer = with_method(GRPOTrainer, "{text}")  # AsyncGRPOTrainer is refused'
        return "from vcpo_bench.adapters.trl import with_method", made
    if trainer == "verl":
        mode = f"'actor_rollout_ref.actor.policy_loss.loss_mode=\"vcpo_bench:{text}\"'"
        needed = "actor_rollout_ref.rollout.calculate_log_probs=True"
        if any(reasons_against(method, VERL)):
            norms = ("actor_rollout_ref.actor.strategy=fsdp2",) if "score_norm_sq" in method.needs else ()
            return needed, "trainer.v1.trainer_mode=vcpo_bench", *norms, mode
        return needed, "algorithm.rollout_correction.bypass_mode=True", mode
    if trainer == "prime-rl":
        import_path = 'import_path = "vcpo_bench.adapters.prime_rl.loss"'
        loss = ("[trainer.loss]", 'type = "custom"', import_path, "[trainer.loss.kwargs]", f'method = "{text}"')
        return *loss, "[orchestrator.train]", "filter_zero_advantages = false"  # else they are not in its divisor
    if trainer == "slime":
        path = "--loss-type custom_loss --custom-loss-function-path vcpo_bench.adapters.slime.loss"
        return f"{path} --custom-config-path loss.yaml", f"loss.yaml: {slime.SETTING}: {text}"
    registered = "from vcpo_bench.adapters.skyrl import register"
    chosen = f'trainer.algorithm.policy_loss_type="vcpo_bench:{text}" trainer.algorithm.loss_reduction=token_mean'
    logged = "generator.sampling_params.logprobs=1 trainer.algorithm.use_kl_loss=false"
    return registered, f'register("{text}")', f"{chosen} {logged}"
