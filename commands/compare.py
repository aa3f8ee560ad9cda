"""`vcpo-bench compare`: which method is better at which lag."""

from __future__ import annotations

from vcpo_bench.commands.support.findings import Ids, Tables, show_findings
from vcpo_bench.commands.support.options import Folders
from vcpo_bench.commands.support.verb import Verb


def compare(folders: Folders = None, out: Tables = None, ids: Ids = False) -> None:
    """Say which method is better at which lag, and how sure that is.

    Every finding is one sentence, with a 95% confidence interval where one can be computed. To see what changed from
    one results folder to another: vcpo-bench results diff.
    """
    show_findings("compare", folders, out, ids)


VERB = Verb(
    compare,
    order=4,
    examples=("vcpo-bench compare results/default", "vcpo-bench compare results/node1 results/node2 --out tables"),
)
