"""`vb.diagnose`: from the path of a log to a diagnosis. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vcpo_bench.analysis.diagnosis import Diagnosis, LoggedRun, read_run
from vcpo_bench.analysis.diagnosis import diagnose as diagnose_run
from vcpo_bench.analysis.diagnosis.references import REFERENCE


def diagnose(
    run: str | Path | LoggedRun,
    *,
    baseline: str | Path | LoggedRun | None = None,
    framework: str = "auto",
    columns: Mapping[str, str] | None = None,
    calibration: str | Path | None = None,
) -> Diagnosis:
    """Say when and why a run collapsed, from the log of any trainer or from a cell of a results folder.

    Args:
        run: File or folder of a log, or what `vcpo_bench.analysis.diagnosis.read_run` returned.
        baseline: Log of a healthy run to compare with; `reference`: the two runs that ship for its trainer.
        framework: Who wrote the logs; `auto`: found from their names.
        columns: Our column (`docs/columns.md`) to its name in the logs, where it is not known.
        calibration: File of `vcpo-bench lab calibrate`; None: the rates that ship.

    Returns:
        The diagnosis: outcome, onset, order of signals, causes with evidence, and what could not be seen.

    Raises:
        UsageError: Nothing can be read, or nothing in it is known.
    """

    def opened(one: str | Path | LoggedRun) -> LoggedRun:
        return one if isinstance(one, LoggedRun) else read_run(one, framework, columns)

    ours = baseline == REFERENCE
    other = None if baseline is None or ours else opened(baseline)
    return diagnose_run(opened(run), other, calibration, references=ours)
