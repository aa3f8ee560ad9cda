"""Parameters of a verb that stand for groups of options, those of the settings among them."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from command_line import VERBS, click_command
from typer.testing import CliRunner

from vcpo_bench.commands.run import run
from vcpo_bench.commands.support.option_groups import ungrouped
from vcpo_bench.commands.support.options import GRID, LANGUAGE_MODEL, SWITCHES
from vcpo_bench.errors import UsageError
from vcpo_bench.records.setting import settings_of
from vcpo_bench.records.settings import CellFields, CellSettings, LanguageModelSettings

FLAGS = {one.name: one for one in click_command("run").params}
WITHOUT_A_FLAG = {"stop"}
"""Fixed for all runs; decided by `--stop-on-alarm`."""


@dataclass(frozen=True)
class Pot:
    liters: Annotated[float, typer.Option(help="Size.")]
    lid: Annotated[bool, typer.Option("--lid", help="With a lid.")] = False


def cook(
    who: Annotated[str, typer.Option(help="Cook.")] = "me",
    pot: Pot = Pot(1.0),
    *,
    settings: Annotated[CellSettings, "policy", "steps"],
) -> None:
    print(who, pot, settings.policy, settings.steps, settings.changed())


def called(*arguments: str) -> Any:
    kitchen = typer.Typer()
    kitchen.command()(ungrouped(cook))
    return CliRunner().invoke(kitchen, list(arguments))


def test_a_group_stands_for_its_options() -> None:
    parameters = inspect.signature(ungrouped(cook)).parameters
    assert set(parameters) == {"who", "liters", "lid", "policy", "steps"}
    assert called("--liters", "3", "--lid").stdout == f"me {Pot(3.0, True)} tiny 200 {{'steps': 200}}\n"
    assert called("--liters", "3", "--steps", "5").stdout == f"me {Pot(3.0)} tiny 5 {{'steps': 5}}\n"
    assert called().exit_code == 2, "--liters has no default"


def test_a_value_that_is_not_legal_is_refused_before_the_verb_runs() -> None:
    with pytest.raises(UsageError, match=r"^--steps 0: must be a whole number, 1 or more$"):
        raise called("--liters", "3", "--steps", "0").exception


def test_a_verb_without_groups_is_left_alone() -> None:
    assert ungrouped(print) is print


def test_no_verb_has_more_than_15_parameters_and_run_has_a_group_for_each_concern() -> None:
    counts = {name: len(inspect.signature(verb.function).parameters) for name, verb in VERBS.items()}
    assert max(counts.values()) <= 15, counts
    assert counts["run"] == len(inspect.signature(run).parameters) <= 8


def test_every_setting_has_its_flag() -> None:
    for name, one in settings_of(CellSettings).items():
        assert bool(one.help) == (name not in WITHOUT_A_FLAG) == (one.parameter in FLAGS)
        if not one.help:
            continue
        option = FLAGS[one.parameter]
        assert option.opts == [one.flag]
        assert (option.default, option.help) == (one.given_nothing, one.help)
        panel = SWITCHES if one.kind is bool else LANGUAGE_MODEL if name in settings_of(LanguageModelSettings) else GRID
        assert option.rich_help_panel == panel


def test_axes_have_the_defaults_of_a_cell() -> None:
    for name in ("task", "regime", "device"):
        assert FLAGS[name].default == getattr(CellFields, name)
    assert float(FLAGS["lr"].default) == CellFields.lr
