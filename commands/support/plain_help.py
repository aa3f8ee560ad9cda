"""Help pages without names of Python types: releases of typer print `<list[Path]>` behind an argument called DIR."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_SWITCHES = ("help", "install_completion", "show_completion")
"""Switches that are not ours."""


def hide_types(parameters: list[Any]) -> None:
    """Let arguments and switches show no type: their metavar, or their name, says what they are."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" or parameter.name in _SWITCHES:
            parameter.display_type_rich = lambda **_: None


class PlainHelp(TyperCommand):
    """A verb whose help shows no types."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        hide_types(self.get_params(ctx))
        super().format_help(ctx, formatter)
