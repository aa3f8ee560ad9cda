"""Fact 3: TIS dies, TIS with OPOB alone is stable, both halves together are best."""

from __future__ import annotations

import pandas as pd

from scorecard import panel
from scorecard.before_lag import each
from scorecard.fact import Fact, Part, Verdict
from scorecard.rules import RUNS, SEEDS, above, number
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import t_interval, wilson

DIE = 0.5


def judge(tables: Tables) -> list[Part]:
    """Per task: who survives, and the two main effects on the final reward."""
    parts: list[Part] = []
    for task in panel.RATES:
        runs = tables.outcomes(panel.long_runs(task), panel.vcpo(task), panel.halves(task))
        parts += [_survives(task, runs), _effects(task, runs)]
    return parts


def _survives(task: str, runs: pd.DataFrame) -> Part:
    failed = runs.groupby("method")["failed"]
    lost = {str(method): (int(own.sum()), len(own)) for method, own in failed}
    tis, alone = lost[panel.TIS], lost[panel.OPOB_ALONE]
    (tis_low, tis_high), (low, high) = wilson(*tis), wilson(*alone)
    verdict: Verdict = "undecided"
    if tis[0] >= DIE * tis[1]:
        verdict = "reproduced" if high < tis_low else "refuted" if low > DIE else "undecided"
    elif tis_high < DIE:
        verdict = "refuted"
    counts = ", ".join(f"`{method}` {count} of {total}" for method, (count, total) in lost.items())
    return Part(f"{task}: tis fails, opob alone survives", verdict, f"failed: {counts}", unit=RUNS)


def _effects(task: str, runs: pd.DataFrame) -> Part:
    wide = runs.pivot(index="seed", columns="method", values="final")
    neither, both = wide[panel.TIS], wide[panel.VCPO]
    opob_only, ess_only = wide[panel.OPOB_ALONE], wide[panel.ESS_ALONE]
    opob = (both + opob_only - ess_only - neither) / 2
    ess = (both + ess_only - opob_only - neither) / 2
    interaction = both - opob_only - ess_only + neither
    ends = [t_interval(values) for values in (opob, ess, interaction)]
    verdicts = {above(*ends[0]), above(*ends[1])}
    verdict = "refuted" if "refuted" in verdicts else "reproduced" if verdicts == {"reproduced"} else "undecided"
    names = ("OPOB", "ESS scaling", "interaction")
    text = "; ".join(
        f"{name} {number(float(values.mean()), *end)}"
        for name, values, end in zip(names, (opob, ess, interaction), ends, strict=True)
    )
    return Part(f"{task}: both halves help", verdict, f"final reward: {text}", float(opob.mean()), *ends[0], SEEDS)


def note(tables: Tables) -> str:
    """Which failures came before their lag was reached; those of `tis` stand at fact 1."""
    return each(tables, *(panel.halves(task) for task in panel.RATES))


FACT = Fact(
    number=3,
    title="Ablation of VCPO",
    order=11,
    statement="Ablation: TIS dies; TIS with OPOB alone is stable; both halves together are best.",
    source="VCPO (2602.17616), figure 9, as a fork reports it",
    rule=(
        "Runs of fact 1 and the two halves. Lives: at least half of `tis` is lost, and the Wilson interval of "
        "`vcpo(ess=off)` lies below that of `tis` (reproduced); refuted if `tis` is shown to lose less than half, or "
        "`vcpo(ess=off)` more than half. Both halves help: both main effects on the final reward at update 300, "
        "paired by seed, are above 0 with their t intervals; refuted if one lies below 0. The interaction is "
        "reported."
    ),
    judge=judge,
    blocks=panel.everything(),
    note=note,
)
