"""Classify each signal by a fixed rule on its AUROC before, at and after onset, under looser and tighter matching.

In this order: too few runs; *warns ahead* (better than chance at the primary lead, and how far back without a gap);
*points the other way* there; *warns shortly before* (10 updates, not more). Else the strongest explanation that is
significant at the 0.1% level: *reacts after the fact* (only within the gap between evaluations, or after); *a clock*
(informative when controls may be at any step, not when matched on it); *reflects the lag or task* (informative against
any lag and task at the same step, not when matched). Else *uninformative*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.auroc import AFTER
from vcpo_bench.analysis.prediction.panel import LEADS, PRIMARY_LEAD, TOO_FEW

AHEAD = "warns ahead"
OTHER_WAY = "points the other way"
SHORTLY = "warns shortly before"
AFTER_THE_FACT = "reacts after the fact"
CLOCK = "a clock"
LAG = "reflects the lag or task"
UNINFORMATIVE = "uninformative"

_LEVEL = 0.05
_STRICT = 0.001  # three explanations per signal, uncorrected


def verdict_table(auroc: pd.DataFrame, matching: pd.DataFrame, nulls: pd.DataFrame) -> pd.DataFrame:
    """One row per signal.

    Args:
        auroc: Of `analysis.prediction.auroc.auroc_table`.
        matching: Of `analysis.prediction.auroc.matching_table`.
        nulls: Of `analysis.prediction.null_models.nulls_table`.

    Returns:
        `signal`, `verdict`, `reach` (longest lead at which it warns, without a gap from the primary one; NaN
        otherwise), `timing` (True: it beats its own earlier values, so it says when and not only which run),
        `beyond_configuration` (True: it beats permutation among the seeds of one configuration).
    """
    rows = []
    for name, table in auroc.groupby("signal", sort=False):
        leads = {int(row["lead"]): row for row in table.to_dict("records")}
        schemes = {str(row["match"]): row for row in matching[matching["signal"] == name].to_dict("records")}
        word = _verdict(str(name), leads, schemes)
        null = nulls[nulls["signal"] == name].set_index("null")["p"]
        rows.append(
            {
                "signal": name,
                "verdict": word,
                "reach": _reach(str(name), leads) if word == AHEAD else np.nan,
                "timing": bool(null.get("shifted", 1.0) < _LEVEL),
                "beyond_configuration": bool(null.get("permuted within configuration", 1.0) < _LEVEL),
            }
        )
    return pd.DataFrame(rows)


def _verdict(name: str, leads: dict[int, dict[Any, Any]], schemes: dict[str, dict[Any, Any]]) -> str:
    main = leads[PRIMARY_LEAD]
    if main["verdict"] == TOO_FEW:
        return TOO_FEW
    if _told(name, main):
        return AHEAD if main["value"] > 0.5 else OTHER_WAY
    if _told(name, leads[10]) and leads[10]["value"] > 0.5:
        return SHORTLY
    explanations = {
        AFTER_THE_FACT: max((leads[LEADS[0]], leads[AFTER]), key=lambda row: float(row["value"])),
        CLOCK: schemes["lag"],
        LAG: schemes["step"],
    }
    strength = {label: abs(row["value"] - 0.5) for label, row in explanations.items() if row["p"] < _STRICT}
    if strength.get(AFTER_THE_FACT) and explanations[AFTER_THE_FACT]["value"] < 0.5:
        del strength[AFTER_THE_FACT]
    return max(strength, key=lambda label: float(strength[label])) if strength else UNINFORMATIVE


def _told(name: str, row: dict[Any, Any]) -> bool:
    """Better or worse than chance: the primary endpoint as it is, everything else after Holm's correction."""
    primary = name == PRIMARY and row["lead"] == PRIMARY_LEAD
    return bool((row["p"] if primary else row["p_holm"]) < _LEVEL)


def _reach(name: str, leads: dict[int, dict[Any, Any]]) -> float:
    reach = PRIMARY_LEAD
    for lead in (one for one in LEADS if one > PRIMARY_LEAD):
        if not (_told(name, leads[lead]) and leads[lead]["value"] > 0.5):
            break
        reach = lead
    return float(reach)
