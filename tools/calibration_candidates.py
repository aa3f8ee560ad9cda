"""What the signals that came after the first making change when the calibration grid is judged again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.calibrating.judge import (
    HeldOut,
    all_detectors,
    configuration_deals,
    configuration_folds,
    group_folds,
    judge,
    rates,
)
from vcpo_bench.analysis.calibrating.runs import study_of_results
from vcpo_bench.analysis.calibrating.tune import Material, material
from vcpo_bench.analysis.results import load

LATER = (
    "dose",
    "ess_beyond_kl",
    "length_surge",
    "log_weight_low",
    "log_weight_tails",
    "log_weight_var",
    "negative_surprisal",
    "prompt_ignored",
)
"""Signals that the packaged detectors could not be chosen from: they were not there."""
AS_REGISTERED = "registered deal"
"""Folds of configurations by name: task, method, lag and learning rate, dealt once."""


def by_candidates(results: Path) -> pd.DataFrame:
    """Rates of detectors with all candidates, and with those of the first making.

    Returns:
        Columns `candidates` (`all` or `first making`), `held_out` (`configurations`: means over ways of dealing them
        into folds, twins together; `AS_REGISTERED`; `tasks`), `detectors` (those that all runs choose), and those of
        `analysis.calibrating.judge.rates`.
    """
    everything = material(study_of_results(load(results), "calibration"))
    tables = []
    for label, given in (("all", everything), ("first making", _without(everything, LATER))):
        chosen = "; ".join(one.text for one in all_detectors(given))
        for place, judged in _judged(given).items():
            tables.append(rates(given, judged).assign(candidates=label, held_out=place, detectors=chosen))
    table = pd.concat(tables, ignore_index=True)
    first = ["candidates", "held_out", "detectors"]
    return table[[*first, *table.columns.drop(first)]]


def _judged(given: Material) -> dict[str, list[HeldOut]]:
    study = given.study
    by_name = replace(study, configuration=study.panel.configuration)
    return {
        "configurations": [judge(given, folds) for folds in configuration_deals(study).values()],
        AS_REGISTERED: [judge(given, configuration_folds(by_name))],
        "tasks": [judge(given, group_folds(study))],
    }


def _without(given: Material, names: tuple[str, ...]) -> Material:
    levels = {name: one for name, one in given.levels.items() if name not in names}
    return replace(given, levels=levels, peaks={name: given.peaks[name] for name in levels})
