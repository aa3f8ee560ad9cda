"""`vcpo-bench lab calibrate`: alarms with error rates measured on runs of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.foreign_logs import FRAMEWORK, MAP, parse_map
from vcpo_bench.commands.support.options import Plugins, load_plugins
from vcpo_bench.commands.support.outputs import check_file, check_folder
from vcpo_bench.commands.support.say import say
from vcpo_bench.commands.support.verb import Verb

PACKAGED = "packaged"


def calibrate(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Results folders of vcpo-bench, or logs of finished runs of any trainer."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Calibration file to write.")] = Path("calibration.json"),
    name: Annotated[
        str, typer.Option(metavar="TEXT", help="What to call these runs. By default the names of the paths.")
    ] = "",
    tables: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the tables behind the sentences, as CSV.")
    ] = None,
    detectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measure the detectors of this file as they are; 'packaged' means those of the package.",
        ),
    ] = None,
    framework: Annotated[str, FRAMEWORK] = "auto",
    mapping: Annotated[str, MAP] = "",
    plugin: Plugins = None,
) -> None:
    """Tune the alarms on finished runs and measure their error rates.

    Any of the alarms is raised in at most one healthy run in ten. Rates are measured on configurations that did not
    choose the thresholds, with intervals over configurations, and stand in the file. Use it with --calibration in watch
    and diagnose, or in Monitor and MonitorCallback.
    """
    from vcpo_bench.analysis.calibrating.report import calibrate as run
    from vcpo_bench.analysis.calibrating.runs import runs_of_logs, runs_of_results
    from vcpo_bench.analysis.csv_text import without_formulas
    from vcpo_bench.analysis.logs import read_run
    from vcpo_bench.analysis.monitoring.calibration import DEFAULTS, load_calibrations
    from vcpo_bench.analysis.results import load_comparable
    from vcpo_bench.errors import UsageError
    from vcpo_bench.files.atomic import replacing, write_text
    from vcpo_bench.progress import track
    from vcpo_bench.records import CELLS

    check_file("--out", out)
    check_folder("--tables", tables)
    load_plugins(plugin)
    called = name or ", ".join(path.name for path in paths)
    ours = [(path / CELLS).is_dir() for path in paths]
    if any(ours) and not all(ours):
        raise UsageError("results folders and logs of other trainers cannot be calibrated together; run it on each")
    columns = parse_map(mapping)
    given = () if detectors is None else load_calibrations(DEFAULTS if str(detectors) == PACKAGED else detectors)
    study = (
        runs_of_results(load_comparable(paths), called)
        if all(ours)
        else runs_of_logs(
            [read_run(log, framework, columns) for log in track(paths, "reading logs", len(paths))], called
        )
    )
    report = run(study, [calibration.detector for calibration in given])
    write_text(out, report.document, typed=True)
    for sentence in report.sentences:
        say(sentence)
    if tables is not None:
        tables.mkdir(parents=True, exist_ok=True)
        for title in ("parts", "deals", "transfer", "verdict", "runs"):
            with replacing(tables / f"{title}.csv") as file:
                without_formulas(getattr(report, title)).to_csv(file, index=False)
    say(f"calibration: {out}")


VERB = Verb(
    calibrate,
    examples=(
        "vcpo-bench lab calibrate results/calibration --out calibration.json",
        "vcpo-bench lab calibrate logs/run1 logs/run2 --name ours --out ours.json",
    ),
)
