"""What `show method NAME --in TRAINER` says: settings that the reference numbers show, adapters, or the reason."""

import json
from itertools import product

import pytest
from golden_folder import GOLDEN, MAPPING, folder

from vcpo_bench.adapters.recipes import TRAINERS, own_settings, recipe
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method

NOT_SETTINGS = {"old", "old_log_prob", "max_completion_length", "max_seq_len", "rl_scale", "level"}
"""What entries record of how the reference was called, and not of its configuration."""


def leaves(config: object) -> list[tuple[str, object]]:
    if not isinstance(config, dict):
        return []
    found = [(name, value) for name, value in config.items() if not isinstance(value, dict)]
    return found + [leaf for value in config.values() for leaf in leaves(value)]


@pytest.mark.parametrize("own", own_settings(), ids=lambda own: f"{own.trainer} {own.compared}")
def test_own_settings_are_what_a_reference_was_compared_under(own: object) -> None:
    trainer, compared, expression, settings = own  # type: ignore[misc]
    spec, entry = MAPPING[compared], folder(GOLDEN).entries[compared]
    assert parse_method(spec["expression"]).canonical == parse_method(expression).canonical
    assert trainer in TRAINERS
    for name, value in leaves(entry.get("config")):
        if name not in NOT_SETTINGS and value not in (None, "token"):
            assert str(value) in settings, (name, value)


@pytest.mark.parametrize(
    ("name", "trainer"), list(product(["clip", "vcpo", "vespo", "gspo", "cispo", "estr"], TRAINERS))
)
def test_every_method_has_an_answer_in_every_trainer(name: str, trainer: str) -> None:
    found = recipe(parse_method(name), trainer)
    assert found.lines
    assert (found.way == "not possible") == found.lines[0].startswith("not possible, because ")


def test_no_method_is_left_without_an_answer() -> None:
    assert all(recipe(parse_method(name), "trl").lines for name in method_names())


def test_trainers_own_settings_come_first_and_then_the_adapter() -> None:
    assert recipe(parse_method("cispo"), "skyrl").lines[0].count("cispo_anchor=rollout") == 1
    assert "epsilon_high=0.28" in recipe(parse_method("clip(high=0.28)"), "trl").lines[0]
    assert recipe(parse_method("clip(high=0.3)"), "trl").way == "adapter"
    assert recipe(parse_method("clip+ess"), "trl").way == "adapter"  # the step rule is not TRL's
    assert "bypass_mode=True" in " ".join(recipe(parse_method("clip"), "verl").lines)
    assert "trainer_mode=vcpo_bench" in " ".join(recipe(parse_method("m2po"), "verl").lines)
    assert "strategy=fsdp2" in " ".join(recipe(parse_method("vcpo"), "verl").lines)
    assert recipe(parse_method("vespo"), "prime-rl").lines[-2:] == (
        "[orchestrator.train]",
        "filter_zero_advantages = false",
    )


def test_what_cannot_be_had_says_why() -> None:
    assert "single rows" in recipe(parse_method("m2po"), "slime").lines[0]
    assert "no adapter" in recipe(parse_method("vespo"), "areal").lines[0]
    assert "whole gradients" in recipe(parse_method("gac"), "verl").lines[0]
    with pytest.raises(UsageError, match="unknown trainer 'ver'; did you mean verl"):
        recipe(parse_method("clip"), "ver")


def test_the_index_of_reference_numbers_names_them_all() -> None:
    known = {f"{entry['family']}:{entry['id']}" for entry in json.loads((GOLDEN / "index.json").read_text())["entries"]}
    assert {own.compared for own in own_settings()} <= known
