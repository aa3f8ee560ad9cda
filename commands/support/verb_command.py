"""The click command behind every verb: a full disk is named, whatever the verb was writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from vcpo_bench.commands.support.streams import OUTPUT
from vcpo_bench.errors import DiskFullError, UsageError
from vcpo_bench.files.disk_space import disk_full, is_disk_full

_SWITCHES = ("help", "install_completion", "show_completion")
"""Switches that are not ours."""


def hide_types(parameters: list[Any]) -> None:
    """Let arguments and switches show no type: their metavar, or their name, says what they are."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" or parameter.name in _SWITCHES:
            parameter.display_type_rich = lambda **_: None


@contextmanager
def one_line(ctx: Any) -> Iterator[None]:
    """Read arguments inside: what click says of them becomes one line.

    Raises:
        UsageError: The arguments cannot be read.
    """
    try:
        yield
    except Exception as error:
        message = getattr(error, "format_message", None)  # click's, of whatever version
        if ctx.resilient_parsing or message is None:
            raise
        said = message().partition(", unable to parse")[0].rstrip(".")
        raise UsageError(f"{said[:1].lower()}{said[1:]}; see {ctx.command_path} --help") from error


class VerbCommand(TyperCommand):
    """Refuses a flag given twice, shows how far a long verb is, and turns the many errors of a full disk into one."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        hide_types(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments.

        Raises:
            UsageError: The arguments cannot be read, or an option with one value is there twice: click would take the
                last and say nothing.
        """
        given = list(args)
        with one_line(ctx):
            rest: list[str] = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a shell completes a line that is not finished
            return rest
        _, _, found = self.make_parser(ctx).parse_args(args=given)
        single = [one for one in found if one.param_type_name == "option" and one.nargs == 1 and not _repeats(one)]
        for option in single:
            if single.count(option) > 1:
                raise UsageError(f"{option.opts[0]}: is given twice; a list goes into one value, separated by commas")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the verb.

        Raises:
            DiskFullError: There is no space left where it writes.
        """
        from vcpo_bench.interrupts import promise
        from vcpo_bench.progress import listening
        from vcpo_bench.reports.terminal.plain_console import PlainConsole
        from vcpo_bench.reports.terminal.progress_line import ProgressLine

        if getattr(ctx.obj, "resumes", False):
            promise("ended cells are kept; run the same command again to resume")
        try:
            with ProgressLine(PlainConsole(stderr=True)) as line, listening(line):
                return super().invoke(ctx)
        except DiskFullError:
            raise
        except Exception as error:
            if not is_disk_full(error) or (isinstance(error, OSError) and error.filename == OUTPUT):
                raise  # the latter to `cli.main`
            raise disk_full(_paths(ctx.params)) from error


def _repeats(option: Any) -> bool:
    """Whether an option may be given several times, or has no value to lose."""
    return bool(option.multiple or option.is_flag)


def _paths(parameters: dict[str, Any]) -> list[Path]:
    """The files and folders among the values of a verb, `--out` first; the working directory last."""
    values = [parameters.get("out"), *parameters.values()]
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return [*(each for each in flat if isinstance(each, Path)), Path()]
