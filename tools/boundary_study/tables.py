"""The tables that ship with the boundary study: one row per run, and the signals of the main runs.

Of the signals there is the trailing mean of five updates at every fifth update. The evaluations are ten updates apart
and the leads are multiples of five, so each landmark is at such an update, whatever the onsets of runs that are made
later: a fifth of the size of the recorded columns, and all that an AUROC needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.monitoring.signal import PRIMARY, all_signals
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.panel import WINDOW
from vcpo_bench.analysis.results import Results, load

from .alarms import PLACE, first_alarms
from .design import PILOT_SEEDS, PLACES, SEEDS, STEPS, Outcomes, Place

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies" / "boundary"
RUN = [*PLACE, "rung", "seed"]
FACTS = ["stage", "lr", "event", "failed", "known", "onset", "final_reward"]
RIVALS = (
    "kl",
    "log_weight_var",
    "log_weight_low",
    "log_weight_tails",
    "ess_beyond_kl",
    "negative_surprisal",
    "dose",
    "length_surge",
    "prompt_ignored",
    "reward_low",
)
SIGNALS = (PRIMARY, *RIVALS)
LAST = 3
"""Evaluations whose mean is the final reward."""
_FINEST = 16
COMPRESSED = {"method": "gzip", "mtime": 1}
"""How tables are packed, with a fixed time: the same runs make the same file."""


class Tables(NamedTuple):
    """The shipped tables.

    Attributes:
        runs: One row per run: `RUN`, `FACTS` and the first alarm of each detector.
        signals: One row per main run and fifth update, up to the onset: `RUN`, `update` (how many had been applied) and
            `SIGNALS`.
    """

    runs: pd.DataFrame
    signals: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Tables:
        """The tables of a folder; empty ones where nothing has run yet."""
        if not (folder / "runs.csv").exists():
            return cls.empty()
        return cls(pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "signals.csv.gz"))

    @classmethod
    def empty(cls) -> Tables:
        """Tables without a run."""
        return cls(pd.DataFrame(columns=[*RUN, *FACTS]), pd.DataFrame(columns=[*RUN, "update", *SIGNALS]))

    @classmethod
    def of(cls, results: Path) -> Tables:
        """The tables of the runs of a results folder that belong to the study and have ended."""
        loaded = load(results)
        places = {(place.task, place.method, place.staleness): place for place in PLACES}
        table = events(loaded)
        owners = [places.get(place) for place in table[PLACE].itertuples(index=False, name=None)]
        table["rung"] = [_rung(place, lr) for place, lr in zip(owners, table["lr"], strict=True)]
        own = table["rung"].notna() & (table["status"] != "error") & table["seed"].isin([*PILOT_SEEDS, *SEEDS])
        runs = table[own].copy()
        evals = loaded.evals.sort_values("step").groupby("key")["sampled_reward"]
        runs["final_reward"] = runs["key"].map(evals.apply(lambda curve: curve.tail(LAST).mean()))
        runs["stage"] = np.where(runs["seed"].isin(PILOT_SEEDS), "pilot", "main")
        runs["known"] = ~runs["event"].isin(UNDECIDED) & (runs["failed"] | ~runs["unresolved"].astype(bool))
        alarms = first_alarms(loaded.select(runs["key"]))
        signals = _signals(loaded, runs[runs["stage"] == "main"])
        whole = runs.merge(alarms, on="key", how="left")[[*RUN, *FACTS, *alarms.columns.drop("key")]]
        return cls(whole.sort_values(RUN).reset_index(drop=True), signals)

    def write(self, folder: Path) -> None:
        """Write both tables."""
        folder.mkdir(parents=True, exist_ok=True)
        self.runs.to_csv(folder / "runs.csv", index=False, float_format="%.6g")
        path = folder / "signals.csv.gz"
        self.signals.to_csv(path, index=False, float_format="%.5g", compression=COMPRESSED)


def joined(old: Tables, new: Tables) -> Tables:
    """The runs of both; where both have a run, that of the second, with its signals."""
    known = pd.MultiIndex.from_frame(new.runs[RUN])
    kept = [table[~pd.MultiIndex.from_frame(table[RUN]).isin(known)] for table in old]
    parts = [[one for one in pair if len(one)] or [pair[0]] for pair in zip(kept, new, strict=True)]
    runs, signals = (pd.concat(part, ignore_index=True) for part in parts)
    return Tables(
        runs.sort_values(RUN).reset_index(drop=True), signals.sort_values([*RUN, "update"]).reset_index(drop=True)
    )


def outcomes(runs: pd.DataFrame) -> dict[Place, Outcomes]:
    """Whether each run failed, by place, rung and seed."""
    by_name = dict(iter(runs.groupby(PLACE)))
    found: dict[Place, Outcomes] = {}
    for place in PLACES:
        own = by_name.get((place.task, place.method, place.staleness))
        if own is not None:
            keys = zip(own["rung"].astype(float), own["seed"].astype(int), strict=True)
            found[place] = dict(zip(keys, own["failed"].astype(bool), strict=True))
    return found


def _rung(place: Place | None, lr: float) -> float:
    """The rung of a learning rate at a place; NaN: no rung of this study has it."""
    if place is None:
        return float("nan")
    rung = round(2 * np.log2(lr / place.guess) * _FINEST) / _FINEST
    return rung if np.isclose(place.rate(rung), lr, rtol=1e-6) else float("nan")


def _signals(results: Results, runs: pd.DataFrame) -> pd.DataFrame:
    """The scores of each run at every `WINDOW`th update up to its onset."""
    signals, names = all_signals(), runs.set_index("key")[[*RUN, "onset"]]
    rows = [pd.DataFrame(columns=[*RUN, "update", *SIGNALS])]
    for key, steps in results.select(runs["key"]).steps_by_cell():
        own = names.loc[key]
        scores = {name: streamed_mean(signals[name].of(steps), WINDOW)[WINDOW - 1 :: WINDOW] for name in SIGNALS}
        updates = np.arange(WINDOW, len(steps) + 1, WINDOW)
        table = pd.DataFrame({name: own[name] for name in RUN} | {"update": updates} | scores)
        rows.append(table[table["update"] <= np.nan_to_num(own["onset"], nan=STEPS)])
    return pd.concat([one for one in rows if len(one)] or rows[:1], ignore_index=True)
