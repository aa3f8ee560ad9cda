"""Fact 4: ESS falls before KL and reward; and stays low for long in runs that live."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scorecard import panel
from scorecard.before_lag import total
from scorecard.fact import Fact, Part
from scorecard.rules import SEEDS, above, number, share_above
from scorecard.tables import Tables
from vcpo_bench.analysis.intervals import t_interval

ALARMED, WINDOW, LEAST_HEALTHY = 0.1, 10, 6
LOW_ESS, STRETCH, SHARE = 0.1, 20, 0.1
SIGNALS = ("ess", "kl", "reward")


def judge(tables: Tables) -> list[Part]:
    """Per task: which alarm is first. Over tasks: how often ESS is low for long in healthy runs."""
    parts, calm, total = [], 0, 0
    for task in panel.RATES:
        runs = tables.outcomes(panel.long_runs(task), panel.vcpo(task), panel.halves(task))
        healthy = runs.loc[runs["event"] == "healthy", "run"]
        total += len(healthy)
        calm += sum(_long_low(tables.signals(run)) for run in healthy)
        parts += _order(task, tables, runs)
    figure = f"healthy lagged runs with at least {STRETCH} updates in a row below {LOW_ESS}: {{}}"
    return [*parts, share_above("low for long in runs that survive", figure, calm, total, SHARE)]


def _order(task: str, tables: Tables, runs: pd.DataFrame) -> list[Part]:
    scores = {run: _scores(tables.signals(run)) for run in runs["run"]}
    healthy = runs.loc[runs["event"] == "healthy", "run"]
    lost = runs[runs["failed"] & (runs["onset"] > 0)]
    if len(healthy) < LEAST_HEALTHY or lost["seed"].nunique() < 2:
        text = f"{len(healthy)} healthy and {len(lost)} failed runs are too few"
        return [Part(f"{task}: order of alarms", "undecided", text)]
    peaks = pd.DataFrame({run: scores[run].max() for run in healthy}).T
    bars = peaks.quantile(1 - ALARMED)
    first = pd.DataFrame(
        [_alarms(scores[run], bars, onset) for run, onset in zip(lost["run"], lost["onset"], strict=True)]
    )
    first["seed"] = lost["seed"].to_numpy()
    mean = first.groupby("seed").mean()
    parts = []
    for name, other in (("kl", "ess"), ("reward", "kl")):
        ahead = (mean[name] - mean[other]).to_numpy()
        low, high = t_interval(ahead)
        medians = ", ".join(f"{signal} {first[signal].median():.0f}" for signal in SIGNALS)
        figure = (
            f"updates ahead: {number(float(ahead.mean()), low, high)}; median first alarm: {medians}; {len(lost)} "
            "failed runs"
        )
        parts.append(
            Part(f"{task}: {other} before {name}", above(low, high), figure, float(ahead.mean()), low, high, SEEDS)
        )
    return parts


def _scores(updates: pd.DataFrame) -> pd.DataFrame:
    """Per update, larger is worse: lack of ESS, KL, and the fall of the trailing mean reward from its best."""
    reward = updates["sampled_reward"].rolling(WINDOW, min_periods=WINDOW).mean()
    columns = {"ess": -updates["ess_ratio"], "kl": updates["kl_mu_theta_k3"], "reward": reward.cummax() - reward}
    return pd.DataFrame(columns).set_index(updates["step"])


def _alarms(scores: pd.DataFrame, bars: pd.Series, onset: float) -> dict[str, float]:
    """Update of the first alarm of each signal, at the latest the onset of the fall."""
    before = scores.loc[:onset]
    steps = before.index.to_numpy(float)
    hit = {name: np.flatnonzero(before[name] > bars[name]) for name in SIGNALS}
    return {name: float(steps[at[0]]) if at.size else onset for name, at in hit.items()}


def _long_low(updates: pd.DataFrame) -> bool:
    low = (updates["ess_ratio"] < LOW_ESS).to_numpy()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], low.astype(int), [0]])))
    return bool((edges[1::2] - edges[::2] >= STRETCH).any())


def note(tables: Tables) -> str:
    """How many failures came before their lag was reached."""
    return total(tables, *panel.everything())


FACT = Fact(
    number=4,
    title="ESS falls before KL and reward",
    order=12,
    statement=(
        "ESS falls before KL and reward. It is also low for long in a run that is fine: below 0.1 from step 10, "
        "accuracy fine until 150."
    ),
    source="VCPO (2602.17616), section 3.1 and results figure",
    rule=(
        "Runs of fact 3. Each signal alarms above the level that a tenth of the healthy lagged runs of the task ever "
        "exceed (at least 6 of them). Per lost run the update of the first alarm, at the latest the onset; mean of a "
        "seed's runs. The difference KL minus ESS, and reward minus KL, is above 0 (reproduced) or below (refuted) "
        f"with its t interval. Low for long: more than a tenth of the healthy runs have {STRETCH} updates in a row "
        f"with ESS below {LOW_ESS} (reproduced) or fewer (refuted), Wilson."
    ),
    judge=judge,
    blocks=panel.everything(),
    signals=True,
    note=note,
)
