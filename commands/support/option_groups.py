"""Options in groups: a parameter of a verb whose type is a dataclass stands for one option per field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from vcpo_bench.commands.support.options import GRID, LANGUAGE_MODEL, SWITCHES
from vcpo_bench.records.setting import Setting, settings_of
from vcpo_bench.records.settings import CellSettings, LanguageModelSettings, read_settings

_METAVARS = {int: "N", float: "X", str: "EXPR", bool: ""}


@dataclass(frozen=True)
class _Group:
    """The options that a parameter stands for, and what makes its value of theirs."""

    options: list[inspect.Parameter]
    read: Callable[[Mapping[str, Any]], Any]


def ungrouped(function: Callable[..., None]) -> Callable[..., None]:
    """A verb's function as typer takes it: with one parameter per option.

    A parameter of type `CellSettings` stands for the flags of all settings, one of type
    `Annotated[CellSettings, "policy", "replay"]` for those of the settings named.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: group for name, hint in hints.items() if (group := _group(hint))}
    if not groups:
        return function
    options: list[inspect.Parameter] = []
    for one in inspect.signature(function).parameters.values():
        options += groups[one.name].options if one.name in groups else [_option(one.name, hints[one.name], one.default)]

    def call(**values: Any) -> None:
        read = {
            name: group.read({each.name: values.pop(each.name) for each in group.options})
            for name, group in groups.items()
        }
        function(**values, **read)

    call.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in options}
    return call


def _group(hint: Any) -> _Group | None:
    kind, *named = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if kind is CellSettings:
        table = settings_of(CellSettings)
        chosen = [one for one in table.values() if (one.name in named if named else one.help)]
        return _Group([_setting_option(one, None if named else GRID) for one in chosen], read_settings)
    if not is_dataclass(kind):
        return None
    hints = get_type_hints(kind, include_extras=True)
    options = [_option(one.name, hints[one.name], one.default) for one in fields(kind)]
    return _Group(options, lambda values: hint(**values))


def _setting_option(one: Setting, panel: str | None) -> inspect.Parameter:
    """The option of a setting, as its line in the table describes it."""
    if one.kind is bool:
        panel = SWITCHES
    elif one.name in settings_of(LanguageModelSettings):
        panel = LANGUAGE_MODEL
    option = typer.Option(metavar=one.metavar or _METAVARS[one.kind], help=one.help, rich_help_panel=panel)
    return _option(one.parameter, Annotated[one.kind, option], one.given_nothing)


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
