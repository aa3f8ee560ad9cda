"""`vcpo-bench results merge`: results folders of several machines become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.verb import Verb


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Results folders; they are only read.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results folder to copy the cells to.")],
) -> None:
    """Join results folders that were filled on several machines.

    Cells that have ended are copied and verified. If two folders have a cell with different numbers, nothing is
    written, and the error names it.
    """
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.cells.merge import SHOWN
    from vcpo_bench.bench.cells.merge import merge as join

    done = join(folders, out)
    parts = [f"{counted(done.copied, 'cell')} copied to {out}"]
    parts += [f"{done.present} there already or in several folders"] if done.present else []
    parts += [f"{done.unfinished} left out because they have not ended"] if done.unfinished else []
    say(", ".join(parts))
    if done.left_out:
        more = f", and {len(done.left_out) - SHOWN} more" if len(done.left_out) > SHOWN else ""
        say_aside(f"left out, as no part of the results: {', '.join(done.left_out[:SHOWN])}{more}")


VERB = Verb(merge, examples=("vcpo-bench results merge results/node1 results/node2 --out results/all",))
