"""What is said of runs, signals and alarms. A number that rests on too few runs is not given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.findings import NOTE, Finding, Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.alarm_outcomes import FURTHEST, NEAREST
from vcpo_bench.analysis.prediction.alarms import NUMBERS
from vcpo_bench.analysis.prediction.auroc import SAME_CONFIGURATION
from vcpo_bench.analysis.prediction.panel import LEAST_CONFIGURATIONS, NEEDED, PRIMARY_LEAD, TOO_FEW, Panel
from vcpo_bench.analysis.prediction.thresholds import OPERATING
from vcpo_bench.analysis.wording import interval_of, with_interval

RUNS = "runs"
"""Topic: what became of the runs."""
AUROC = "auroc"
"""Topic: how well ESS ranks the runs that will fail, by lead."""
RIVALS = "rivals"
"""Topic: how well other signals rank them, and what is left among seeds of one configuration."""
ALARMS = "alarms"
"""Topic: what alarms would have announced, at what cost."""

_RUN_COUNTS = ("started", "healthy", "collapsed", "nan", "stopped", "not_judged")
_AREA = ("signal", "lead", "n_collapsed", "n_healthy", "value", "low", "high", "verdict")
_LEVEL = 0.05


def runs(found: Findings) -> Iterator[Finding]:
    """How many runs were started, what became of them, and when they failed."""
    table, collapses = found.tables["runs"], found.tables["collapses"]
    total = table[list(_RUN_COUNTS)].sum()
    text = (
        f"{total['started']} runs were started: {total['collapsed']} collapsed ({total['nan']} of them as nan), "
        f"{total['healthy']} never collapsed, {total['stopped']} were stopped by an alarm (censored), and the collapse "
        f"rule does not apply to {total['not_judged']}."
    )
    yield found.finding(RUNS, text, "runs", table, ("task", "method", "staleness", "lr", *_RUN_COUNTS))
    if len(collapses):
        text = f"Half of the {len(collapses)} collapses began by update {collapses['onset'].median():.0f}."
        yield found.finding(RUNS, text, "collapses", collapses, ("key", "event", "onset"))


def shared_fates(found: Findings) -> Iterator[Finding]:
    """How many configurations decide the fate of all their seeds, and hence what is resampled."""
    table = found.tables["runs"]
    failed = table["collapsed"]
    judged = failed + table["healthy"]
    several = judged > 1
    if not several.any():
        return
    alike = int(((failed == 0) | (failed == judged))[several].sum())
    text = f"In {alike} of {int(several.sum())} configurations with several seeds, all of these ended alike. "
    few = min(int((failed > 0).sum()), int((table["healthy"] > 0).sum()))
    text += "Intervals resample configurations, not runs"
    if few < LEAST_CONFIGURATIONS:
        text += (
            f": with collapsed or healthy runs in only {few} of them, fewer than {LEAST_CONFIGURATIONS}, none is given"
        )
    text += "."
    yield found.finding(RUNS, text, "runs", table, ("task", "method", "staleness", "lr", *_RUN_COUNTS))


def twins(found: Findings, panel: Panel) -> Iterator[Finding]:
    """How many runs are one run until shortly before a failure, if any are."""
    sizes = np.bincount(panel.twins) if panel.twins is not None else np.zeros(1, dtype=np.int64)
    several = sizes[sizes > 1]
    if several.size:
        text = (
            f"{several.sum()} runs record the same as another of them until {PRIMARY_LEAD} updates before a collapse "
            f"({several.size} different): only their lags differ, and these come into effect later. Their "
            "configurations count as one."
        )
        yield found.finding(RUNS, text, "runs", found.tables["runs"], ("task", "method", "staleness", "lr"))


def failing_methods(found: Findings) -> Iterator[Finding]:
    """Failures per method. If one accounts for most of them, identifying it is most of what any predictor does."""
    table = found.tables["runs"]
    failed = table.groupby("method")[["collapsed", "started"]].sum()
    rows = failed.sort_values("collapsed", ascending=False, kind="stable").reset_index().to_dict("records")
    total, safe = sum(row["collapsed"] for row in rows), sum(not row["collapsed"] for row in rows)
    if not total:
        return
    columns = ("method", "started", "collapsed", "nan")
    named = "; ".join(f"{row['method']} {row['collapsed']} of {row['started']}" for row in rows if row["collapsed"])
    rest = f"; none under {'the other method' if safe == 1 else f'the other {safe} methods'}" if safe else ""
    yield found.finding(RUNS, f"Collapses by method: {named}{rest}.", "runs", table, columns)
    if rows[0]["collapsed"] > total / 2 and len(rows) > 1:
        text = (
            f"{rows[0]['collapsed'] / total:.0%} of the collapses occur under {rows[0]['method']}, which is known "
            "without looking at the run: see `matching`."
        )
        yield found.finding(RUNS, text, "runs", table, columns)


def primary_endpoint(found: Findings) -> Iterator[Finding]:
    """ESS at the primary lead, and at the other leads."""
    table = found.tables["auroc"]
    here = table[table["signal"] == PRIMARY]
    if here.empty:
        yield found.finding(AUROC, "Primary endpoint: ESS was not recorded.", "auroc", table, ("signal",))
        return
    part = here[here["lead"] == PRIMARY_LEAD]
    main = part.iloc[0]
    what = f"Primary endpoint, ESS {PRIMARY_LEAD} updates before the onset of collapse, against runs of the same task, "
    what += "regime, lag and step"
    if main["verdict"] == TOO_FEW:
        text = f"{what}: too few runs or configurations ({_counts(main)}; {NEEDED})."
        yield found.finding(AUROC, text, "auroc", part, _AREA, known=False)
        return
    text = f"{what}: AUROC {interval_of(main)}, {main['verdict']} ({_counts(main)})."
    yield found.finding(AUROC, text, "auroc", part, _AREA)
    leads = "; ".join(f"{row['lead']} before {value_or_too_few(row)}" for row in here.to_dict("records"))
    yield found.finding(AUROC, f"AUROC of ESS by lead in updates: {leads}.", "auroc", here, _AREA)


def rivals(found: Findings) -> Iterator[Finding]:
    """Which other signals warn, and what is left of ESS where only the seeds differ."""
    table = found.tables["auroc"]
    here = table[(table["lead"] == PRIMARY_LEAD) & (table["signal"] != PRIMARY) & (table["verdict"] != TOO_FEW)]
    told = here[(here["p_holm"] < _LEVEL) & (here["value"] > 0.5)]
    if len(told):
        ordered = told.sort_values("value", ascending=False, kind="stable").to_dict("records")
        named = "; ".join(f"{row['signal']} {interval_of(row)}" for row in ordered)
        text = f"AUROC of other signals {PRIMARY_LEAD} updates ahead that differ from chance after Holm's correction: "
        yield found.finding(RIVALS, f"{text}{named}.", "auroc", told, (*_AREA, "p_holm"))
    elif len(here):
        text = f"No other signal differs from chance {PRIMARY_LEAD} updates ahead, after Holm's correction."
        yield found.finding(RIVALS, text, "auroc", here, (*_AREA, "p_holm"))
    match = found.tables["matching"]
    part = match[(match["signal"] == PRIMARY) & (match["match"] == SAME_CONFIGURATION)]
    if len(part):
        text = (
            f"Against runs of the same method and learning rate too, which differ in their seed only, ESS "
            f"{PRIMARY_LEAD} updates ahead has AUROC {value_or_too_few(part.iloc[0])}."
        )
        columns = ("signal", "match", "n_collapsed", "n_healthy", "value", "low", "high", "verdict")
        yield found.finding(RIVALS, text, "matching", part, columns, part.iloc[0]["verdict"] != TOO_FEW)


def alarms(found: Findings) -> Iterator[Finding]:
    """What alarms of ESS announce at the operating point and what they cost, and the best of the others."""
    table, columns = found.tables["alarms"], ("signal", "n_collapsed", "n_healthy")
    if table.empty:
        text = "Alarms: thresholds are tuned on training seeds, and with one seed none can be held out."
        yield found.finding(NOTE, text, "runs", found.tables["runs"], ("task", "method", "staleness", "lr", "seeds"))
        return
    own = table[table["signal"] == PRIMARY]
    if len(own):
        yield _ess_alarms(found, own)
    others = table[(table["verdict"] != TOO_FEW) & (table["signal"] != PRIMARY)]
    best = others.sort_values(["recall", "false_per_1000"], ascending=[False, True], kind="stable").head(5)
    if len(best):
        named = "; ".join(
            f"{row['signal']} {row['recall']:.2f}, {row['false_per_1000']:.1f}" for row in best.to_dict("records")
        )
        text = f"Best other signals at the same point (recall, false alarms per 1,000 healthy updates): {named}."
        yield found.finding(ALARMS, text, "alarms", best, (*columns, "recall", "false_per_1000"))


def _ess_alarms(found: Findings, part: pd.DataFrame) -> Finding:
    columns, row = ("signal", "n_collapsed", "n_healthy"), part.iloc[0].to_dict()
    point = f"tuned to alarm at most {OPERATING:.0%} of the healthy training runs, on held-out seeds"
    if row["verdict"] == TOO_FEW:
        text = f"ESS alarms, {point}: too few runs or configurations ({_counts(row)}; {NEEDED})."
        return found.finding(ALARMS, text, "alarms", part, (*columns, "verdict"), known=False)
    caught = round(row["recall"] * row["n_collapsed"])
    lead = f", median lead {row['lead_median']:.0f} updates" if caught else ""
    text = (
        f"ESS alarms, {point}: {caught} of {row['n_collapsed']} collapses announced {NEAREST} to {FURTHEST} updates "
        f"ahead (recall {interval_of(row, 'recall')}{lead}), at {interval_of(row, 'false_per_1000')} false alarms per "
        f"1,000 healthy updates, in {interval_of(row, 'healthy_alarmed')} of the healthy runs. Whether acting on an "
        "alarm helps is another question: `vcpo-bench lab fork`."
    )
    return found.finding(ALARMS, text, "alarms", part, (*columns, *NUMBERS))


def unrecorded_signals(found: Findings) -> Iterator[Finding]:
    """Which signals no run recorded."""
    signals = found.tables["signals"]
    missing = signals[~signals["recorded"].astype(bool)]
    if len(missing):
        text = f"Not recorded, hence not judged: {', '.join(missing['signal'])} (see `vcpo-bench run --record`)."
        yield found.finding(NOTE, text, "signals", missing, ("signal", "recorded"))


def value_or_too_few(row: Mapping[Any, Any] | pd.Series) -> str:
    """AUROC with its interval, or how few runs there are."""
    if row["verdict"] == TOO_FEW:
        return f"too few ({_counts(row)})"
    return with_interval(row["value"], row["low"], row["high"])


def _counts(row: Mapping[Any, Any] | pd.Series) -> str:
    return f"{row['n_collapsed']} collapsed, {row['n_healthy']} healthy"
