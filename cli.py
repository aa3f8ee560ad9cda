"""The command line: the app and its errors. Every verb is a file of `commands/` or of a folder there."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer

import vcpo_bench
from vcpo_bench.commands.support.say import say_aside
from vcpo_bench.commands.support.streams import prepare_streams
from vcpo_bench.commands.support.verb_group import VerbGroup
from vcpo_bench.errors import NO_TORCH, VcpoBenchError
from vcpo_bench.files.disk_space import is_disk_full
from vcpo_bench.naming.plugins import fault_of_plugin

MISUSED = 2
READER_LEFT = 1
"""Exit code where nobody takes the output any more, as click has it: no error is printed."""


class OneLineErrors(VerbGroup):
    """Turns errors a user can cause into one line and exit code 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the verb."""
        try:
            return super().parse_args(ctx, args)
        except VcpoBenchError as error:
            say_aside(f"error: {error}")
            raise typer.Exit(MISUSED) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb and its arguments, in which `~` is the home folder where the shell left it alone."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, [_at_home(one) for one in rest]

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen verb."""
        try:
            return super().invoke(ctx)
        except SystemExit as error:  # ours are click's: this one is of a plug-in, and would pass for success
            if isinstance(error.__context__, BrokenPipeError):  # rich's, where whoever reads the help has left
                raise typer.Exit(READER_LEFT) from None
            say_aside(f"error: a plug-in ended the program (sys.exit({error.code!r})); nothing after that was done")
            raise typer.Exit(MISUSED) from None
        except Exception as error:
            if (line := _explained(error)) is None:
                raise
            say_aside(f"error: {line}")
            raise typer.Exit(MISUSED) from None


def _explained(error: Exception) -> str | None:
    """An error in one line, if it is one that a user can cause; None: it is a mistake of ours, or nobody reads on."""
    if isinstance(error, VcpoBenchError):
        return str(error)
    if is_out_of_memory(error):
        return ADVICE
    if isinstance(error, OSError) and (error.errno == errno.EPIPE or is_disk_full(error)):
        return None
    if line := fault_of_plugin(error):
        return line
    if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "safetensors"):
        return NO_TORCH
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.filename is None:
        return error.strerror
    return f"{error.filename}: {error.strerror}; choose another file or folder"


app = typer.Typer(
    name="vcpo-bench",
    cls=OneLineErrors,
    help="Benchmark and diagnose stabilizers for asynchronous RL of language models.\n\n"
    "Which stabilizer survives at your policy lag, why a run collapsed, and whether you could have known.",
    epilog="Start with: vcpo-bench demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"vcpo-bench {vcpo_bench.__version__}")
        raise typer.Exit


@app.callback()
def _front(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """What is asked of the program itself; its help is that of the app."""


def main() -> None:
    """Run the command line.

    Raises:
        SystemExit: Always, with the exit code.
    """
    prepare_streams()
    if problem := refused_platform(sys.platform):
        say_aside(f"error: {problem}")
        sys.exit(MISUSED)
    try:
        os.getcwd()
    except FileNotFoundError:
        say_aside("error: the working directory was deleted; change to another folder")
        sys.exit(MISUSED)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not is_disk_full(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the interpreter fails again when it flushes at its end
        sys.stderr.write("error: standard output: the disk it is written to is full; free space there\n")
        raise SystemExit(MISUSED) from None


def refused_platform(name: str) -> str:
    """Why nothing runs on a platform (`sys.platform`); empty: it does."""
    return "Windows has no POSIX locks and signals; use WSL 2 (docs/platforms.md)" if name == "win32" else ""


def _at_home(argument: str) -> str:
    flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{flag}{equals}{os.path.expanduser(value)}" if value.startswith("~") else argument


ADVICE = "there is not enough memory; raise the limit of this shell (ulimit -v) or of the job, or use another machine"
_TEXTS = ("failed to map segment", "Cannot allocate memory", "can't allocate memory", "Unable to allocate")


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, says that memory ran out, or too little may be used."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if any(text in str(error) for text in _TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False
