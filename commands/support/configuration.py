"""`--config` and `--save-config`: the flags of a verb, read from a YAML file and written to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from vcpo_bench.configs import PRESETS
from vcpo_bench.errors import UsageError

_NO_SETTINGS = {"config", "save_config", "help", "dry_run", "cells", "plugin"}


def read_config(ctx: typer.Context, value: str) -> str:
    """Make the file's values the defaults of this call, so that a flag typed wins.

    Raises:
        UsageError: The file cannot be read or has an illegal key or value, or its name was typed and is empty.
    """
    source = ctx.get_parameter_source("config")
    if not value and source is not None and source.name == "COMMANDLINE":
        raise UsageError("--config is empty: name a preset or a YAML file")
    if value:
        from vcpo_bench.bench.cells.preset_file import read_configuration

        flags = config_flags(ctx.command)
        kinds = {flag: type(p.default) if isinstance(p.default, (bool, int)) else str for flag, p in flags.items()}
        values = read_configuration(value, PRESETS, kinds)
        ctx.default_map = {flags[flag].name: setting for flag, setting in values.items()}
    return value


def write_config(ctx: typer.Context, path: Path) -> None:
    """Write the settings of this call so that `--config` reads them back.

    Raises:
        UsageError: The file cannot be written.
    """
    from vcpo_bench.bench.cells.preset_file import write_configuration
    from vcpo_bench.bench.samplers.vllm_engine.address import without_secrets

    settings = {flag: ctx.params[p.name] for flag, p in config_flags(ctx.command).items()}
    if settings.get("url"):
        settings["url"] = without_secrets(settings["url"])
    write_configuration(
        path, {k: str(v) if isinstance(v, Path) else v for k, v in settings.items() if v not in ("", None)}
    )


def config_flags(command: Any) -> dict[str, Any]:
    """The long flags of a command, without dashes, and their parameters: what a configuration file may set."""
    parameters = [p for p in command.params if p.name not in _NO_SETTINGS]
    return {max(p.opts, key=len).lstrip("-"): p for p in parameters}
