"""Fact 7: a collapsed run ends with a vanished gradient, a large KL, and no ESS."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scorecard import panel
from scorecard.fact import Fact, Part
from scorecard.rules import share_above
from scorecard.tables import Tables

SHARE, LAST_UPDATES = 0.8, 20
GRADIENT, KL, ESS = 1e-3, 1.0, 0.1


def judge(tables: Tables) -> list[Part]:
    """Three parts, over both tasks; each run is compared with the healthy runs of its task."""
    ends = pd.concat([_ends(task, tables) for task in panel.RATES])
    gradient = int((ends["grad_norm"] < GRADIENT * ends["healthy"]).sum())
    parts = (
        (f"gradient norm below {GRADIENT:g} of healthy", gradient),
        (f"KL of {KL:g} nats per token or more", int((ends["kl_mu_theta_k3"] >= KL).sum())),
        (f"ESS ratio at most {ESS:g}", int((ends["ess_ratio"] <= ESS).sum())),
    )
    medians = ", ".join(f"{name} {ends[name].median():.2g}" for name in _COLUMNS) if len(ends) else "none"
    figure = f"of runs that collapsed: {{}}; medians at the end: {medians}"
    return [share_above(name, figure, count, len(ends), SHARE) for name, count in parts]


_COLUMNS = ["grad_norm", "kl_mu_theta_k3", "ess_ratio", "entropy", "sampled_reward"]


def _ends(task: str, tables: Tables) -> pd.DataFrame:
    """Medians of the last updates of the runs that are collapsed at update 600, and the gradient of healthy ones."""
    lost = tables.outcomes(panel.long_runs(task), until=panel.TWICE)
    alive = tables.outcomes(panel.vcpo(task), panel.synchronous(task))
    healthy = [_tail(tables, run)["grad_norm"] for run in alive.loc[alive["event"] == "healthy", "run"]]
    ends = [_tail(tables, run) for run in lost.loc[lost["event"] == "collapse", "run"]]
    table = pd.DataFrame(ends, columns=pd.Index(_COLUMNS))
    return table.assign(healthy=float(np.median(healthy)) if healthy else np.nan)


def _tail(tables: Tables, run: int) -> pd.Series:
    return tables.signals(run).tail(LAST_UPDATES)[_COLUMNS].median()


FACT = Fact(
    number=7,
    title="How a collapsed run ends",
    order=15,
    statement="A collapsed run ends with a gradient norm of 1e-7 to 1e-8, K3 of 1 to 10, and an ESS that stays near 0.",
    source="VCPO (2602.17616), figures",
    rule=(
        "Runs of fact 1 that are collapsed at update 600, medians of the last 20 updates. The share with a gradient "
        "norm below 1/1000 of the median healthy run's of its task, with K3 of at least 1, and with an ESS ratio of "
        "at most 0.1, is each above 0.8 (reproduced) or below it (refuted), Wilson."
    ),
    judge=judge,
    blocks=tuple(make(task) for task in panel.RATES for make in (panel.long_runs, panel.vcpo, panel.synchronous)),
    signals=True,
)
