"""The command line: the app and its errors. Every verb is a file of `commands/`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from vcpo_bench.commands.support.verb import attach_verbs
from vcpo_bench.errors import VcpoBenchError


class _OneLineErrors(TyperGroup):
    """Errors a user can cause become one line and exit code 2; Ctrl-C one line and 130."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted: what has finished is kept; the same command goes on from here", err=True)
            raise typer.Exit(130) from None
        except VcpoBenchError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        except OSError as error:
            if error.filename is None:
                raise
            typer.echo(f"error: {error.filename}: {error.strerror}; name another file or folder", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    name="vcpo-bench",
    cls=_OneLineErrors,
    help="Which stabilizer survives at your policy lag, why a run collapsed, and whether you could have known.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


attach_verbs(app)


def main() -> None:
    """Run the command line."""
    app()
