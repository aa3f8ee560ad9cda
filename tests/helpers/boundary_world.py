"""Runs of a boundary study in which it is known what each signal knows."""

from typing import Any

import numpy as np
import pandas as pd
from boundary_study import design
from boundary_study.design import PILOT_SEEDS, SEEDS, Place
from boundary_study.tables import SIGNALS, Tables

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.null_models import WITHIN

SHIFT = 1.0
"""Of ESS in runs that will fail, in standard deviations between runs: AUROC 0.76."""
TRUTH = 0.760


def series(place: int, onsets: list[float]) -> dict[str, np.ndarray[Any, Any]]:
    """Raw signals [N, S]: ESS knows early, reward jumps just before the onset, KL is noise, log-weights are ESS."""
    random = np.random.default_rng(place)
    failed = np.isfinite(onsets)
    shape = (len(onsets), design.STEPS)
    steady = random.normal(size=len(onsets)) + SHIFT * failed
    raw = {name: random.normal(size=shape) for name in SIGNALS}
    raw[PRIMARY] = np.repeat(steady[:, None], design.STEPS, axis=1)
    raw["log_weight_var"] = np.exp(raw[PRIMARY])
    at = np.arange(1, design.STEPS + 1)
    raw["reward_low"] += 100 * (at[None, :] > np.nan_to_num(onsets, nan=np.inf)[:, None] - 10)
    raw["length_surge"] = np.ones(shape)
    return raw


def planted(places: tuple[Place, ...]) -> Tables:
    runs, signals = [], []
    for number, place in enumerate(places):
        head = {"task": place.task, "method": place.method, "staleness": place.staleness, "rung": 0.0, "lr": 1e-4}
        onsets = [40.0 + 10 * (nth % 12) if nth < 16 else np.nan for nth in range(len(SEEDS))]
        runs += [head | row(seed, onset) for seed, onset in zip(SEEDS, onsets, strict=True)]
        runs += [head | row(seed, 50.0 if seed < 102 else np.nan) for seed in PILOT_SEEDS]
        smooth = {name: streamed_mean(raw, 5)[:, 4::5] for name, raw in series(number, onsets).items()}
        for seed, onset in zip(SEEDS, onsets, strict=True):
            own = pd.DataFrame(head | {"seed": seed, "update": np.arange(5, 301, 5)}).drop(columns="lr")
            own = own.assign(**{name: values[seed - SEEDS[0]] for name, values in smooth.items()})
            signals.append(own[own["update"] <= np.nan_to_num(onset, nan=300)])
    return Tables(pd.DataFrame(runs), pd.concat(signals, ignore_index=True))


def row(seed: int, onset: float) -> dict[str, Any]:
    failed = bool(np.isfinite(onset))
    facts = {
        "seed": seed,
        "stage": "pilot" if seed in PILOT_SEEDS else "main",
        "event": "collapse" if failed else "healthy",
    }
    facts |= {"failed": failed, "known": True, "onset": onset, "final_reward": 0.5}
    alarm = onset - 20 if failed else (150.0 if seed == SEEDS[-1] else np.nan)
    return facts | {"alarm_kl": alarm, "alarm_ess": onset + 10}


def null_models() -> pd.DataFrame:
    """A table of null models in which ESS knows more than the configuration."""
    row = {"signal": PRIMARY, "null": WITHIN, "value": 0.7, "null_mean": 0.5, "null_low": 0.4, "null_high": 0.6}
    return pd.DataFrame([row | {"p": 0.02}])
