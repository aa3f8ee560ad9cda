"""`vcpo-bench diagnose`: what happened to a run that was trained anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.foreign_logs import FRAMEWORK, MAP, parse_map, read_baseline
from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.outputs import check_file
from vcpo_bench.commands.support.say import say, say_prose
from vcpo_bench.commands.support.verb import Verb

FAILED = 1


def diagnose(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Log file, run folder, or a folder of runs. Give several for parts of one run, oldest first.",
        ),
    ],
    framework: Annotated[str, FRAMEWORK] = "auto",
    mapping: Annotated[str, MAP] = "",
    baseline: Annotated[
        str, typer.Option(metavar="RUN", help="Log of a run to compare the signals with; reference: two of ours.")
    ] = "",
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also run the detectors that vcpo-bench lab calibrate wrote; its error rates are printed.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="HTML page to write as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of text.")] = False,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="VERDICTS",
            help="Exit with 1 if a verdict is one of these: collapsed, declining, dip, stall, healthy, 'cannot tell'.",
        ),
    ] = "",
    plugin: Plugins = None,
) -> None:
    """Say when and why a run collapsed, from any trainer's log.

    Reads the logs of verl, TRL, unsloth, ms-swift, prime-rl, slime, SkyRL, OpenRLHF, AReaL, NeMo-RL, ROLL,
    PipelineRL, open-instruct, Twinkle, tinker-cookbook, Baseten Loops and vcpo-bench. The verdict comes from the reward
    only. Signals are listed in the order in which they left their own history, and each possible cause with the
    evidence for and against it.
    A folder of several runs gives an index of them.
    """
    import json

    from vcpo_bench.analysis.diagnosis import diagnose as find
    from vcpo_bench.analysis.diagnosis import read_run
    from vcpo_bench.analysis.diagnosis.diagnosis import VERDICTS
    from vcpo_bench.analysis.diagnosis.index import index_runs
    from vcpo_bench.analysis.diagnosis.references import REFERENCE
    from vcpo_bench.analysis.logs.errors import SeveralRunsError
    from vcpo_bench.errors import UsageError
    from vcpo_bench.reports.terminal.diagnosis import diagnosis_text, index_text
    from vcpo_bench.reports.writers.diagnosis_page import write_diagnosis, write_index

    failing = [verdict.strip() for verdict in fail_on.split(",") if verdict.strip()]
    if unknown := [verdict for verdict in failing if verdict not in VERDICTS]:
        raise UsageError(f"--fail-on {unknown[0]}: no such verdict; choose from {', '.join(VERDICTS)}")
    check_file("--html", html)
    load_plugins(plugin)
    columns = parse_map(mapping)
    ours = baseline == REFERENCE
    reference = read_baseline(baseline, framework, columns) if baseline and not ours else None
    try:
        run = read_run(paths, framework, columns)
    except SeveralRunsError as several:
        if len(paths) > 1 or ours:
            raise
        rows = index_runs(several.runs, lambda path: read_run(path, framework, columns), reference, calibration)
        if html is not None:
            write_index(rows, Path(paths[0]), html)
        facts = [row.found.as_dict() if row.found else {"path": str(row.path), "problem": row.problem} for row in rows]
        say(json.dumps(facts, indent=2, allow_nan=False) if as_json else index_text(rows, Path(paths[0])))
        if any(row.found is not None and row.found.verdict in failing for row in rows):
            raise typer.Exit(FAILED) from None
        return
    diagnosis = find(run, reference, calibration, references=ours)
    if html is not None:
        write_diagnosis(diagnosis, html)
    if as_json:
        say(json.dumps(diagnosis.as_dict(), indent=2, allow_nan=False))
    else:
        say_prose(diagnosis_text(diagnosis))
    if diagnosis.verdict in failing:
        raise typer.Exit(FAILED)


VERB = Verb(
    diagnose,
    order=5,
    examples=(
        "vcpo-bench diagnose checkpoints/my-run",
        "vcpo-bench diagnose run.jsonl --html run.html --fail-on collapsed",
        "vcpo-bench diagnose log.csv --map reward=score,entropy=policy_entropy",
        "vcpo-bench diagnose checkpoints --html index.html --baseline checkpoints/good",
        "vcpo-bench diagnose trainer_state.json --baseline reference",
    ),
)
