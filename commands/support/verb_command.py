"""The click command behind every verb: a full disk is named, whatever the verb was writing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vcpo_bench.commands.support.plain_help import PlainHelp
from vcpo_bench.errors import DiskFullError
from vcpo_bench.files.disk_space import disk_full, is_disk_full


class VerbCommand(PlainHelp):
    """Shows how far a long verb is, and turns the many errors of a full disk into one that names the folder."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb.

        Raises:
            DiskFullError: There is no space left where it writes.
        """
        from vcpo_bench.progress import listening
        from vcpo_bench.reports.terminal.plain_console import PlainConsole
        from vcpo_bench.reports.terminal.progress_line import ProgressLine

        try:
            with ProgressLine(PlainConsole(stderr=True)) as line, listening(line):
                return super().invoke(ctx)
        except DiskFullError:
            raise
        except Exception as error:
            if not is_disk_full(error) or _output_is_full():
                raise
            raise disk_full(_paths(ctx.params)) from error


def _output_is_full() -> bool:
    """Whether it is standard output that cannot be written, which `cli.main` reports."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _paths(parameters: dict[str, Any]) -> list[Path]:
    """The files and folders among the values of a verb, `--out` first; the working directory last."""
    values = [parameters.get("out"), *parameters.values()]
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return [*(each for each in flat if isinstance(each, Path)), Path()]
