"""A diagnosis on one screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis import Cause, Diagnosis
from vcpo_bench.analysis.diagnosis.chain import chain_sentence
from vcpo_bench.analysis.diagnosis.diagnosis import ShortCurve
from vcpo_bench.analysis.diagnosis.index import IndexedRun
from vcpo_bench.analysis.diagnosis.try_next import how_to_resume

_MOST_SIGNALS = 6
_MOST_EVIDENCE = 3
_MOST_UNSEEN = 3


def diagnosis_text(found: Diagnosis) -> str:
    """The answer as plain text: verdict and chain, what to try next, then signals, causes and what was not seen."""
    blocks = [_head(found), _try_next(found), list(found.answers), _causes(found), _signals(found)]
    if found.baseline:
        blocks.append(
            ["Against the reference run (one run: another seed may differ as much)", *map(_indented, found.baseline)]
        )
    blocks += [_beside(found), _alarms(found), _unseen(found), _log(found)]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _head(found: Diagnosis) -> list[str]:
    run, outcome = found.run, found.outcome
    within = "" if math.isnan(outcome.resolution) else f" (+- {outcome.resolution:g})"
    onset = "" if math.isnan(outcome.onset) else f", onset at step {outcome.onset:g}{within}"
    lines = [f"VERDICT {outcome.verdict}{onset}", _indented(chain_sentence(found.chain)), _indented(outcome.reason)]
    lines.append(_indented(f"{run.path}: {run.title}, up to step {run.last_step:.15g} ({run.step_unit})"))
    return [line for line in lines if line.strip()]


def _try_next(found: Diagnosis) -> list[str]:
    if not found.try_next:
        return []
    how = how_to_resume(found.run.framework)
    step = found.resume_from
    place = "" if math.isnan(step) else f", from the last checkpoint before step {step:g}"
    lines = [f"Try next{place}" + (f" ({how})" if how and place else "")]
    for number, one in enumerate(found.try_next, 1):
        lines += [f"  {number}. {one.set}", f"     {one.why} ({one.source})"]
    return lines


def _signals(found: Diagnosis) -> list[str]:
    if not found.departures:
        return ["No signal left its own history."]
    lines = ["Signals that left their own history, in order (healthy runs have some too; none is a verdict)"]
    for one in found.departures[:_MOST_SIGNALS]:
        label = found.run.series[one.column].column.label
        place = "" if math.isnan(found.onset) else f"  {one.step - found.onset:+g}"
        note = "" if one.tag == "exact" else f" [{one.tag}]"
        lines.append(
            f"  step {one.step:g}{place}  {label} {one.before:.3g} -> {one.after:.3g}  ({one.logged_as}){note}"
        )
    if len(found.departures) > _MOST_SIGNALS:
        lines.append(f"  and {len(found.departures) - _MOST_SIGNALS} more")
    return lines


def _causes(found: Diagnosis) -> list[str]:
    if not found.causes:
        return ["No cause has evidence in this log."]
    lines = ["Causes"]
    for cause in found.causes:
        lines += _cause(cause)
    return lines


def _cause(cause: Cause) -> list[str]:
    evidence = [f"    + {sentence}" for sentence in cause.evidence[:_MOST_EVIDENCE]]
    more = len(cause.evidence) - _MOST_EVIDENCE
    evidence += [f"    + and {more} more"] if more > 0 else []
    return [f"  {cause.standing}: {cause.name}", *evidence, *(f"    - {sentence}" for sentence in cause.against)]


def _beside(found: Diagnosis) -> list[str]:
    if found.references is None:
        return []
    cells = [["", "this run", "one that learns", "one that collapses"]]
    cells += [[one.label, *map(_told, one[1:])] for one in found.references.signals]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    head = f"Beside two runs of a tiny model in {found.references.trainer} (compare shapes, not values)"
    return [head, *map(_indented, rows)]


def _told(curve: ShortCurve | None) -> str:
    return "not logged" if curve is None else f"{sparkline(curve.values)} {curve.start:.3g} -> {curve.end:.3g}"


def _alarms(found: Diagnosis) -> list[str]:
    report = found.alarms
    if report is None:
        return []
    lines = ["Alarms of the calibration (warnings; their rates were measured elsewhere)"]
    lines += [_indented(str(one)) for one in report.alarms] or [_indented("none")]
    lines += [_indented(f"none can come from {signal}: {why}") for signal, why in report.silent.items()]
    return lines + [_indented(note) for note in report.notes]


def _unseen(found: Diagnosis) -> list[str]:
    if not found.unseen:
        return []
    shown = [f"  {one.label}" + (f": {one.switch}" if one.switch else "") for one in found.unseen[:_MOST_UNSEEN]]
    lines = ["Not in this log", *shown]
    if len(found.unseen) > _MOST_UNSEEN:
        lines.append(f"  and {', '.join(one.label for one in found.unseen[_MOST_UNSEEN:])}")
    return lines


def _log(found: Diagnosis) -> list[str]:
    run = found.run
    lines = [_indented(note) for note in (*run.notes, found.outcome.checked) if note]
    lines += [f"  resumed at step {one.step:g}, after step {one.back_from:g}" for one in run.resumes[:3]]
    if run.overwritten:
        lines.append(f"  {run.overwritten:,} values were written again or left behind by a resume")
    return ["About the log and the verdict", *lines] if lines else []


def _indented(sentence: str) -> str:
    return f"  {sentence}"


_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 20
"""Characters of a curve."""


def index_text(rows: Sequence[IndexedRun], root: Path) -> str:
    """The index: name, verdict, onset, first cause, curve of the reward."""
    cells = [("run", "verdict", "onset", "first cause", "reward")]
    for row in rows:
        onset = math.nan if row.found is None else row.found.onset
        verdict = "not read" if row.found is None else row.found.verdict
        shown = "" if math.isnan(onset) else f"{onset:g}"
        cells.append((row.name(root), verdict, shown, row.first_cause or row.problem, sparkline(row.curve)))
    widths = [max(len(line[at]) for line in cells) for at in range(3)]
    cause = max((len(row.first_cause) for row in rows), default=0)
    widths.append(max(cause, len("first cause")))
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, (*widths, 0), strict=True)) for line in cells]
    counts = ", ".join(
        f"{sum(_verdict(row) == one for row in rows)} {one}" for one in dict.fromkeys(map(_verdict, rows))
    )
    compared = [f"  {row.name(root)}: {row.against_baseline}" for row in rows if row.against_baseline]
    blocks = [f"{len(rows)} runs: {counts}", "\n".join(line.rstrip() for line in lines)]
    if compared:
        blocks.append("\n".join(["First against the reference run (another seed of it may differ as much)", *compared]))
    return "\n\n".join([*blocks, "One of them in full: vcpo-bench diagnose RUN"])


def sparkline(values: NDArray[np.float64]) -> str:
    """A curve of at most 20 characters, from the lowest of its values, or 0, to the highest."""
    if not values.size:
        return ""
    means = np.array([part.mean() for part in np.array_split(values, min(_WIDTH, values.size))])
    low, high = min(float(means.min()), 0.0), float(means.max())
    levels = np.zeros(means.size) if high <= low else (means - low) / (high - low) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(float(level))] for level in levels)


def _verdict(row: IndexedRun) -> str:
    return "not read" if row.found is None else row.found.verdict
