"""`lab analyze collapse`: which runs failed, when, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from vcpo_bench.analysis.collapse import sentences as say
from vcpo_bench.analysis.collapse.rule import events, lag_at_onset, sensitivity
from vcpo_bench.analysis.collapse.tables import (
    applicable,
    failure_rates,
    failure_rates_by_lag,
    log_rank_table,
    survival_table,
)
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import CellsBehind, Findings, agreeing, own_key
from vcpo_bench.analysis.results import GROUP, Results

_EVENTS = [
    "key", *GROUP, "seed", "status", "event", "onset", "lag_at_onset", "lowest", "final", "falls", "unresolved",
    "ended_nan",
]  # fmt: skip


def _cells_behind(verdicts: pd.DataFrame) -> dict[str, CellsBehind]:
    judged = applicable(verdicts)
    lagged = judged[judged["staleness"] > 0]
    of_method = agreeing(judged, "method", "staleness")

    def at_lag(rows: pd.DataFrame) -> Iterable[str]:
        """Rows of `log_rank`: over all lags, or at one."""
        everywhere = rows["staleness"].eq("all").any()
        return (
            lagged["key"] if everywhere else lagged.loc[lagged["staleness"].astype(str).isin(rows["staleness"]), "key"]
        )

    behind = {"events": own_key, "rates": agreeing(verdicts, *GROUP), "rates_by_lag": of_method}
    return behind | {
        "survival": of_method,
        "log_rank": at_lag,
        "sensitivity": agreeing(verdicts),
    }


@dataclass(frozen=True, kw_only=True)
class Collapse(Analysis):
    """`vcpo-bench lab analyze collapse`."""

    name = "collapse"
    summary = "Which runs collapsed, when, and how certain that is"

    def run(self, results: Results) -> Findings:
        """Tables `events`, `rates`, `rates_by_lag`, `survival`, `log_rank` and `sensitivity`.

        `lag_at_onset` of `events` is what `analysis.collapse.rule.lag_at_onset` says.
        """
        verdicts = events(results)
        verdicts["lag_at_onset"] = lag_at_onset(results, verdicts).to_numpy()
        tables = {"events": verdicts[_EVENTS], "rates": failure_rates(verdicts)}
        tables |= {"rates_by_lag": failure_rates_by_lag(verdicts), "survival": survival_table(verdicts)}
        tables |= {"log_rank": log_rank_table(verdicts), "sensitivity": sensitivity(results)}
        found = Findings(tables, _cells_behind(verdicts))
        found.statements += [*say.outcomes(found), *say.failures_by_lag(found), *say.survival(found)]
        found.statements.append(say.rule_sensitivity(found))
        return found
