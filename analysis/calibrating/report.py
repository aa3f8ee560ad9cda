"""A calibration: the detectors to use, their rates on held-out configurations, and where that was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.calibrating.judge import (
    ANY,
    HeldOut,
    all_detectors,
    configuration_deals,
    group_folds,
    judge,
    measure,
    rate_of,
    rates,
)
from vcpo_bench.analysis.calibrating.runs import CalibrationRuns
from vcpo_bench.analysis.calibrating.tune import TARGET, Material, material
from vcpo_bench.analysis.monitoring.calibration import LEAST_RUNS, Rate
from vcpo_bench.analysis.monitoring.detectors import Detector
from vcpo_bench.analysis.prediction.clusters import clustered_share
from vcpo_bench.errors import UsageError

FORMAT = 1


@dataclass(frozen=True)
class CalibrationReport:
    """What calibrating came to.

    Attributes:
        document: The calibration file, as `monitoring.calibration.load_calibrations` reads it.
        parts: Of `rates`, configurations held out: the rates in the file, means over ways of dealing them into folds.
        deals: Of `rates`, of any of the detectors, with each of these ways, numbered in `deal`.
        transfer: Of `rates`, whole tasks held out; empty with one task.
        verdict: One row: how the verdict on the training reward compares with the evaluations.
        runs: Runs by how they ended.
        sentences: What to know, one finding each.
    """

    document: str
    parts: pd.DataFrame
    deals: pd.DataFrame
    transfer: pd.DataFrame
    verdict: pd.DataFrame
    runs: pd.DataFrame
    sentences: tuple[str, ...]


def calibrate(study: CalibrationRuns, detectors: Sequence[Detector] = ()) -> CalibrationReport:
    """Tune the detectors on all runs, and measure the procedure on configurations that did not tune them.

    Args:
        study: The runs.
        detectors: Detectors tuned elsewhere, which are measured as they are; empty: they are tuned here.

    Raises:
        UsageError: There is no healthy run to tune on, or no signal in the logs.
    """
    given = material(study)
    measured = bool(detectors)
    detectors = detectors or all_detectors(given)
    if not detectors:
        why = "no run counts as healthy" if not study.healthy.any() else "no signal was recorded in the healthy runs"
        raise UsageError(f"nothing to calibrate on: {why}; give more runs, healthy ones at a lag of 2 or more")
    folds = {} if measured else configuration_deals(study)
    dealt = {deal: judge(given, held_out) for deal, held_out in folds.items()}
    parts = measure(given, detectors) if measured else rates(given, list(dealt.values()))
    deals = deals_table(given, dealt)
    transfer = pd.DataFrame() if measured else rates(given, [judge(given, group_folds(study))])
    verdict = verdict_table(study)
    ended = study.panel.runs["event"].value_counts().rename_axis("event").reset_index(name="runs")
    document = _document(study, detectors, parts, verdict)
    sentences = [*_about_runs(study), _about_detectors(detectors, measured)]
    sentences += [_row_sentence(row, "as they are" if measured else "held-out configurations") for row in _rows(parts)]
    sentences += _about_deals(deals)
    sentences += [_row_sentence(row, "held-out tasks") for row in _rows(transfer) if row["signal"] == ANY]
    sentences.append(_about_verdict(verdict))
    return CalibrationReport(document, parts, deals, transfer, verdict, ended, tuple(sentences))


def deals_table(given: Material, dealt: Mapping[int, HeldOut]) -> pd.DataFrame:
    """Rates of any of the detectors with each way of dealing the configurations into folds."""
    together = {
        deal: HeldOut({ANY: one.alarms[ANY]}, {ANY: one.judged[ANY]}) for deal, one in dealt.items() if one.alarms
    }
    if not together:
        return pd.DataFrame()
    tables = {deal: rates(given, [one]).drop(columns="signal") for deal, one in together.items()}
    return pd.concat(tables, names=["deal"]).reset_index("deal").reset_index(drop=True)


def verdict_table(study: CalibrationRuns) -> pd.DataFrame:
    """The verdict on the training reward against the fate by the evaluations.

    Columns: `n_collapsed`, `n_other`, `found` (share of the collapsed called so) and `false` (share of the others
    called collapsed), each with `_low` and `_high`; empty where nothing could be compared.
    """
    known = np.isfinite(study.called)
    failed, other = known & study.panel.failed, known & ~study.panel.failed
    found = clustered_share(study.called[failed] == 1, study.configuration[failed])
    false = clustered_share(study.called[other] == 1, study.configuration[other])
    if found is None or false is None:
        return pd.DataFrame()
    row: dict[str, Any] = {"n_collapsed": int(failed.sum()), "n_other": int(other.sum())}
    for name, rate in (("found", found), ("false", false)):
        row |= {name: rate.value, f"{name}_low": rate.low, f"{name}_high": rate.high}
    return pd.DataFrame([row])


def _document(study: CalibrationRuns, detectors: Sequence[Detector], parts: pd.DataFrame, verdict: pd.DataFrame) -> str:
    rows = {row["signal"]: row for _, row in parts.iterrows()}
    whole = {
        "format": FORMAT,
        "study": study.name,
        "reward": study.reward,
        "lengths": study.lengths,
        "inputs": study.inputs,
        "union": _union(rows.get(ANY)),
        "verdict": _verdict(verdict),
        "detectors": [_entry(one, rows.get(one.signal), study.name) for one in detectors],
    }
    return json.dumps(whole, indent=1) + "\n"


def _union(row: pd.Series | None) -> dict[str, Any] | None:
    if row is None or row["n_healthy"] < LEAST_RUNS:
        return None
    enough = row["n_collapsed"] >= LEAST_RUNS
    return {
        "healthy_alarmed": _listed(rate_of(row, "healthy_alarmed")),
        "recall": _listed(rate_of(row, "recall")) if enough else None,
        "n_healthy": int(row["n_healthy"]),
        "n_collapsed": int(row["n_collapsed"]),
        "configurations": int(row["configurations"]),
    }


def _verdict(table: pd.DataFrame) -> dict[str, Any] | None:
    if table.empty or min(table["n_collapsed"].iloc[0], table["n_other"].iloc[0]) < LEAST_RUNS:
        return None
    row = table.iloc[0]
    found, false = _listed(rate_of(row, "found")), _listed(rate_of(row, "false"))
    return {"found": found, "false": false, "n_collapsed": int(row["n_collapsed"]), "n_other": int(row["n_other"])}


def _entry(detector: Detector, row: pd.Series | None, study: str) -> dict[str, Any]:
    entry: dict[str, Any] = asdict(detector) | {"study": study}
    if row is None:  # no fold chose it
        return entry | {
            "false_alarms_per_1000_healthy_updates": None,
            "healthy_alarmed": None,
            "recall": None,
            "median_lead": None,
            "n_collapsed": 0,
            "n_healthy": 0,
        }
    lead = float(row["median_lead"])
    return entry | {
        "false_alarms_per_1000_healthy_updates": _listed(rate_of(row, "false_per_1000")),
        "healthy_alarmed": _listed(rate_of(row, "healthy_alarmed")),
        "recall": _listed(rate_of(row, "recall")),
        "median_lead": lead if np.isfinite(lead) else None,
        "n_collapsed": int(row["n_collapsed"]),
        "n_healthy": int(row["n_healthy"]),
    }


def _listed(rate: Rate | None) -> list[float] | None:
    return None if rate is None else [round(one, 4) for one in rate]


def _rows(table: pd.DataFrame) -> list[pd.Series]:
    return [row for _, row in table.iterrows()]


def _about_runs(study: CalibrationRuns) -> list[str]:
    return [
        f"{len(study.panel.runs)} runs of {np.unique(study.configuration).size} configurations: "
        f"{int(study.panel.failed.sum())} collapsed, {int(study.healthy.sum())} healthy at a lag of 2 or more, "
        f"{int(study.dipped.sum())} with a dip."
    ]


def _about_detectors(detectors: Sequence[Detector], measured: bool) -> str:
    named = ", ".join(one.text for one in detectors)
    if measured:
        return f"Detectors as given: {named}."
    return f"Detectors, tuned so that any of them speaks in at most {TARGET:.0%} of healthy runs: {named}."


def _about_deals(deals: pd.DataFrame) -> list[str]:
    if len(deals) < 2 or deals["n_healthy"].min() < LEAST_RUNS:
        return []
    share = deals["healthy_alarmed"]
    return [
        f"Rates of held-out configurations are means of {len(deals)} ways to deal these into folds; each way by itself "
        f"says that any of the detectors speaks in {share.min():.0%} to {share.max():.0%} of healthy runs."
    ]


def _about_verdict(table: pd.DataFrame) -> str:
    if table.empty:
        return "The verdict could not be compared with evaluations."
    row = table.iloc[0]
    found, false = rate_of(row, "found"), rate_of(row, "false")
    assert found is not None
    assert false is not None
    return (
        f"The verdict on the training reward finds {found.percent} of {row['n_collapsed']:g} collapses and calls "
        f"{false.percent} of {row['n_other']:g} other runs collapsed."
    )


def _row_sentence(row: pd.Series, where: str) -> str:
    healthy, recall, false = (rate_of(row, name) for name in ("healthy_alarmed", "recall", "false_per_1000"))
    if healthy is None or false is None or row["n_healthy"] < LEAST_RUNS:
        return f"{row['signal']}, {where}: too few healthy runs ({row['n_healthy']}) for a rate."
    text = (
        f"{row['signal']}, {where}: speaks in {healthy.percent} of {row['n_healthy']} healthy runs, "
        f"{false.value:.2g} [{false.low:.2g}, {false.high:.2g}] alarms per 1,000 healthy updates"
    )
    if recall is None or row["n_collapsed"] < LEAST_RUNS:
        return f"{text}; too few collapses ({row['n_collapsed']}) to say what it announces."
    return (
        f"{text}; announces {recall.percent} of {row['n_collapsed']} collapses 10 to 100 updates ahead "
        f"(median lead {row['median_lead']:.3g}); {row['dips_alarmed']:.3g} of {row['n_dips']} dips alarmed."
    )
