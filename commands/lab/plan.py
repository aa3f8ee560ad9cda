"""`vcpo-bench lab plan`: which weights each update trains on, without training."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb

MOST_UPDATES = 1_000_000
SEED = 0
"""Of random lags and shuffles."""


def plan(
    regime: Annotated[
        str, typer.Option(metavar="EXPR", help="Staleness regime; vcpo-bench ls regimes lists them.")
    ] = "fifo",
    staleness: Annotated[int, typer.Option(metavar="N", min=0, help="Largest lag, in optimizer updates.")] = 16,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Number of updates to draw.")] = 40,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print what each update trains on as JSON.")
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Draw which weight version each update trains on.

    Trains nothing. Also prints the largest lag, the mean lag and the period of the schedule, in optimizer
    updates. An async regime needs a virtual clock, such as async(clock=virtual,sampler=2,learner=1).
    """
    from vcpo_bench.bench.cells.grid_spec import GridSpec
    from vcpo_bench.bench.regimes.simulation import describe, planned_updates
    from vcpo_bench.errors import UsageError

    load_plugins(plugin)
    grid = GridSpec(("clip",), (staleness,), (SEED,), regimes=(regime,))
    grid.check()
    if staleness + steps > MOST_UPDATES:
        raise UsageError(f"--staleness {staleness} --steps {steps}: every update is drawn; ask for at most a million")
    where = (regime, staleness, steps, SEED)
    if as_json:
        updates = planned_updates(*where)
        rows = [
            {"update": update.update, "trajectories_by_lag": update.lags, "held": update.held} for update in updates
        ]
        say(json.dumps(rows))
        return
    say(describe(*where))


VERB = Verb(
    plan,
    examples=(
        "vcpo-bench lab plan --regime minibatch --staleness 7",
        'vcpo-bench lab plan --regime "async(clock=virtual,sampler=2,learner=1)"',
    ),
)
