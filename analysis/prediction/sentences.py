"""What a prediction study says about its runs and signals. A number that rests on too few runs is not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.findings import NOTE, Finding, Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.auroc import hanley_mcneil
from vcpo_bench.analysis.prediction.covariates import KNOWN_BEFORE
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, NEEDED, PRIMARY_LEAD, TOO_FEW, Panel
from vcpo_bench.analysis.prediction.signal_verdicts import AHEAD
from vcpo_bench.analysis.wording import interval_of, with_interval

RUNS = "runs"
"""Topic: what became of the runs of the study."""
AUROC = "auroc"
"""Topic: how well ESS ranks the runs that will fail, by lead."""
VERDICTS = "verdicts"
"""Topic: what each signal turned out to be."""

_COUNTS = ("started", "healthy", "collapsed", "nan", "stopped", "not_judged")
_AREA = ("signal", "lead", "n_collapsed", "n_healthy", "value", "low", "high", "verdict")


def runs(found: Findings) -> Iterator[Finding]:
    """How many runs were started, what became of them, and when they failed."""
    table, failures = found.tables["runs"], found.tables["failures"]
    total = table[list(_COUNTS)].sum()
    text = (
        f"{total['started']} runs were started: {total['collapsed']} collapsed, {total['nan']} ended as nan, "
        f"{total['healthy']} never failed, {total['stopped']} were stopped by an alarm (censored), and the collapse "
        f"rule does not apply to {total['not_judged']}."
    )
    yield found.finding(RUNS, text, "runs", table, ("task", "method", "staleness", "lr", *_COUNTS))
    if len(failures):
        text = f"Half of the {len(failures)} failures began by update {failures['onset'].median():.0f}."
        yield found.finding(RUNS, text, "failures", failures, ("key", "event", "onset"))


def shared_fates(found: Findings) -> Iterator[Finding]:
    """How many configurations decide the fate of all their seeds, and hence what is resampled."""
    table = found.tables["runs"]
    failed = table["collapsed"] + table["nan"]
    judged = failed + table["healthy"]
    several = judged > 1
    if not several.any():
        return
    alike = int(((failed == 0) | (failed == judged))[several].sum())
    text = f"In {alike} of {int(several.sum())} configurations with several seeds, all of these ended alike. "
    few = min(int((failed > 0).sum()), int((table["healthy"] > 0).sum()))
    text += "Intervals resample configurations, not runs"
    if few < LEAST_CONFIGURATIONS:
        text += f": with failed or healthy runs in only {few} of them, fewer than {LEAST_CONFIGURATIONS}, none is given"
    text += "."
    yield found.finding(RUNS, text, "runs", table, ("task", "method", "staleness", "lr", *_COUNTS))


def twins(found: Findings, panel: Panel) -> Iterator[Finding]:
    """How many runs are one run until shortly before a failure, if any are."""
    if panel.twins is None:
        return
    sizes = np.bincount(panel.twins)
    several = sizes[sizes > 1]
    if several.size:
        text = (
            f"{several.sum()} runs record the same as another of them until {PRIMARY_LEAD} updates before a failure "
            f"({several.size} different): only their lags differ, and these come into effect later. Their "
            "configurations count as one, and none trains what is judged on another."
        )
        yield found.finding(RUNS, text, "runs", found.tables["runs"], ("task", "method", "staleness", "lr"))


def failing_methods(found: Findings) -> Iterator[Finding]:
    """Failures per method. If one accounts for most of them, identifying it is most of what any predictor does."""
    table = found.tables["runs"]
    failed = table.assign(failed=table["collapsed"] + table["nan"]).groupby("method")[["failed", "started"]].sum()
    rows = failed.sort_values("failed", ascending=False, kind="stable").reset_index().to_dict("records")
    total, safe = sum(row["failed"] for row in rows), sum(not row["failed"] for row in rows)
    if not total:
        return
    columns = ("method", "started", "collapsed", "nan")
    named = "; ".join(f"{row['method']} {row['failed']} of {row['started']}" for row in rows if row["failed"])
    rest = f"; none under {'the other method' if safe == 1 else f'the other {safe} methods'}" if safe else ""
    yield found.finding(RUNS, f"Failures by method: {named}{rest}.", "runs", table, columns)
    if rows[0]["failed"] > total / 2 and len(rows) > 1:
        text = (
            f"{rows[0]['failed'] / total:.0%} of the failures occur under {rows[0]['method']}. Telling it from the "
            "other methods is most of what a signal does here, and the method is known without looking at the run: see "
            "`+rate+method` in `matching`, `configuration` in `increment`, and the held-out methods."
        )
        yield found.finding(RUNS, text, "runs", table, columns)


def primary_endpoint(found: Findings) -> Iterator[Finding]:
    """ESS at the primary lead, at the other leads, and its precision."""
    table = found.tables["auroc"]
    here = table[table["signal"] == PRIMARY]
    if here.empty:
        yield found.finding(AUROC, "Primary endpoint: ESS was not recorded.", "auroc", table, ("signal",))
        return
    part = here[here["lead"] == PRIMARY_LEAD]
    main = part.iloc[0]
    what = f"Primary endpoint, ESS {PRIMARY_LEAD} updates before the onset of failure, against runs of the same task, "
    what += "regime, lag and step"
    if main["verdict"] == TOO_FEW:
        text = f"{what}: too few runs or configurations ({_counts(main)}; {NEEDED})."
        yield found.finding(AUROC, text, "auroc", part, _AREA)
        return
    half = hanley_mcneil(main["value"], main["n_collapsed"], main["n_healthy"])
    text = (
        f"{what}: AUROC {interval_of(main)}, {main['verdict']} ({_counts(main)}; as many independent runs would give "
        f"about ±{half:.2f})."
    )
    yield found.finding(AUROC, text, "auroc", part, _AREA)
    before_first = here.sort_values("lead", key=lambda leads: leads.where(leads > 0, 1000 - leads))
    leads = "; ".join(_at_lead(row) for row in before_first.to_dict("records"))
    yield found.finding(AUROC, f"AUROC of ESS by lead in updates: {leads}.", "auroc", here, _AREA)
    text = (
        f"Area under the precision-recall curve of ESS at lead {PRIMARY_LEAD}: {interval_of(main, 'auprc', 3)}; chance "
        f"is the prevalence, {main['prevalence']:.3f}."
    )
    columns = ("signal", "lead", "auprc", "auprc_low", "auprc_high", "prevalence")
    yield found.finding(AUROC, text, "auroc", part, columns)


def signal_verdicts(found: Findings) -> Iterator[Finding]:
    """What each signal turned out to be, those that warn ahead first and with their AUROC."""
    verdicts, columns = found.tables["verdicts"], ("signal", "verdict", "reach")
    here = verdicts[(verdicts["verdict"] == AHEAD) | ~verdicts["signal"].isin(KNOWN_BEFORE)]
    ahead = here[here["verdict"] == AHEAD]
    if len(ahead):
        named = ", ".join(f"{row['signal']} {row['reach']:.0f}" for row in ahead.to_dict("records"))
        text = f"Signals that warn ahead, with the longest lead in updates: {named}."
        yield found.finding(VERDICTS, text, "verdicts", ahead, columns)
        yield _areas_of(found, list(ahead["signal"]))
    for word, rows in here[here["verdict"] != AHEAD].groupby("verdict", sort=True):
        heading = "Too few runs or configurations to judge" if word == TOO_FEW else str(word).capitalize()
        yield found.finding(VERDICTS, f"{heading}: {', '.join(rows['signal'])}.", "verdicts", rows, columns)


def _areas_of(found: Findings, signals: list[str]) -> Finding:
    table = found.tables["auroc"]
    rows = table[(table["lead"] == PRIMARY_LEAD) & table["signal"].isin(signals)]
    ordered = rows.sort_values("value", ascending=False, kind="stable").to_dict("records")
    named = "; ".join(f"{row['signal']} {interval_of(row)}" for row in ordered)
    text = f"Their AUROC {PRIMARY_LEAD} updates ahead (judged with Holm's correction, except ESS): {named}."
    return found.finding(VERDICTS, text, "auroc", rows, _AREA)


def unseen_failures(found: Findings) -> Iterator[Finding]:
    """Failures that ESS cannot announce: it was still high at the landmark."""
    table = found.tables["placements"]
    here = table[table["score"].notna()] if "score" in table else table.iloc[:0]
    if here.empty:
        return
    ess = np.exp(-here["score"].to_numpy(dtype=np.float64))
    text = (
        f"{PRIMARY_LEAD} updates before onset, {int((ess > HIGH_ESS).sum())} of {len(here)} failed runs still had an "
        f"ESS ratio above {HIGH_ESS} (the highest: {ess.max():.3f}, {here['key'].iloc[int(ess.argmax())]}). The score "
        "in `placements` is -log(ESS ratio)."
    )
    yield found.finding(VERDICTS, text, "placements", here, ("key", "onset", "score"))


def unrecorded_signals(found: Findings) -> Iterator[Finding]:
    """Which signals no run recorded."""
    signals = found.tables["signals"]
    missing = signals[~signals["recorded"].astype(bool)]
    if len(missing):
        text = f"Not recorded, hence not judged: {', '.join(missing['signal'])} (see `vcpo-bench run --record`)."
        yield found.finding(NOTE, text, "signals", missing, ("signal", "recorded"))


HIGH_ESS = 0.9
"""Above this ESS ratio nobody would expect a failure."""


def value_or_too_few(row: Mapping[Any, Any]) -> str:
    """AUROC with its interval, or how few runs there are."""
    if row["verdict"] == TOO_FEW:
        return f"too few ({_counts(row)})"
    return with_interval(row["value"], row["low"], row["high"])


def _counts(row: Mapping[Any, Any] | pd.Series) -> str:
    return f"{row['n_collapsed']} failed, {row['n_healthy']} healthy"


def _at_lead(row: Mapping[Any, Any]) -> str:
    lead = int(row["lead"])
    when = f"{lead} before" if lead > 0 else f"{-lead} after"
    return f"{when} {value_or_too_few(row)}"
