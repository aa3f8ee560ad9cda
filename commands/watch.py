"""`vcpo-bench watch`: alarms from the log of a run that is still going on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.foreign_logs import CALIBRATION, FRAMEWORK, MAP, parse_map
from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.say import say, say_aside
from vcpo_bench.commands.support.verb import Verb

ALARMED, COMMAND_FAILED = 1, 3


def watch(
    path: Annotated[str, typer.Argument(metavar="RUN", help="Log file or run folder. It need not exist yet.")],
    alarm_command: Annotated[
        str,
        typer.Option(
            metavar="CMD", help="Shell command to run once per alarm; it finds the facts in VCPO_BENCH_* variables."
        ),
    ] = "",
    framework: Annotated[str, FRAMEWORK] = "auto",
    mapping: Annotated[str, MAP] = "",
    calibration: Annotated[Path | None, CALIBRATION] = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.05, max=86400, help="Time between looks at the log.")
    ] = 10.0,
    idle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, help="End after so long without a new row; 0 waits forever or for the run's end."
        ),
    ] = 0.0,
    plugin: Plugins = None,
) -> None:
    """Follow the log of a run and print an alarm the moment one begins.

    Each alarm is one line with its step, and with the error rates of its detector where they were measured; so is a
    fall of the reward by the rule of diagnose. Nothing is ever stopped unless your alarm command does it.

    Exit codes: 0 the run ended without an alarm, 1 with one, 3 an alarm command failed, 2 the log cannot be followed,
    130 Ctrl-C.
    """
    from vcpo_bench.analysis.logs.names import check_wanted
    from vcpo_bench.analysis.monitoring.calibration import chosen_calibrations
    from vcpo_bench.analysis.watching import Follower, RunEvent, RunWatch
    from vcpo_bench.analysis.watching.loop import watch_log
    from vcpo_bench.commands.support.alarm_command import AlarmCommand

    load_plugins(plugin)
    columns = parse_map(mapping)
    check_wanted(framework, columns)
    command, alarms = AlarmCommand(alarm_command, path), 0
    follower = Follower(path, framework, columns)
    for told in watch_log(follower, RunWatch(chosen_calibrations(calibration)), every, idle):
        if not isinstance(told, RunEvent):
            say_aside(told.text)
            continue
        alarms += 1
        say(" ".join(told.text.splitlines()))
        command.start(told)
    command.finish()
    if command.failed:
        raise typer.Exit(COMMAND_FAILED)
    if alarms:
        raise typer.Exit(ALARMED)


VERB = Verb(
    watch,
    order=6,
    examples=(
        "vcpo-bench watch checkpoints/my-run",
        "vcpo-bench watch LOG --alarm-command ./tell-me",  # docs/watch.md: what may cancel a job, and what must not
    ),
)
