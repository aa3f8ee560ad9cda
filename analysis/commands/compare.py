"""`compare`: which method wins at which lag, at its best learning rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from vcpo_bench.analysis.collapse.stable_learning_rates import frontier, stable_rates
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.comparison import effect_sentences as effects
from vcpo_bench.analysis.comparison import sentences as say
from vcpo_bench.analysis.comparison.ablation import ablation_table, cost_table, step_controls
from vcpo_bench.analysis.comparison.aggregates import REPLICATIONS
from vcpo_bench.analysis.comparison.answers import answers, answers_table, disagreements, next_steps, task_rows
from vcpo_bench.analysis.comparison.best_learning_rate import tune
from vcpo_bench.analysis.comparison.cells_behind import cells_behind
from vcpo_bench.analysis.comparison.normalized_rewards import RAW, normalize, score_column
from vcpo_bench.analysis.comparison.pairs import all_pairs
from vcpo_bench.analysis.comparison.rankings import improvement_table, profile_table, ranking, task_means
from vcpo_bench.analysis.comparison.speedup import NOT_INFERIOR, SHARES, speedup_table
from vcpo_bench.analysis.comparison.time_to_target import TARGETS, target_table, target_times
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import Results
from vcpo_bench.naming.parameters import integer
from vcpo_bench.progress import track


def analyze_compare(results: Results, replications: int = REPLICATIONS) -> Findings:
    """Compare the methods at lags above 0; synchronous runs are the anchor, not competitors.

    Tables: `anchors`; `scores` (every cell); `tuned` (per seed, at the learning rate chosen without it), `choices`,
    `budget`; `ranking` (aggregates per lag and method at best learning rates), `by_task`, `pairs`, `improvement`,
    `profiles`, `targets`, `speedup` (against synchronous training, at every share of its gain) and of it
    `non_inferiority`; `stable_rates`, `frontier`; `ablation`, `step_controls`, `cost`; `answers` (one row per lag: the
    best, and how far it is ahead of the next).
    """
    rewards = normalize(results)
    column = score_column(rewards)
    cells = rewards.table[rewards.table["staleness"] > 0]
    tuned = tune(cells, column)
    runs = tuned.runs
    tables = {"anchors": rewards.anchors, "scores": rewards.table, "tuned": runs}
    tables |= {"choices": tuned.choices, "budget": tuned.budget}
    times = target_times(results, rewards, sorted({*TARGETS, *SHARES}))
    steps: dict[str, Callable[[], pd.DataFrame]] = {
        "ranking": lambda: ranking(runs, column, replications),
        "by_task": lambda: task_means(runs, column),
        "pairs": lambda: all_pairs(runs, column),
        "improvement": lambda: improvement_table(runs, column, replications),
        "profiles": lambda: profile_table(runs, column, replications),
        "targets": lambda: target_table(times[times["target"].isin(TARGETS)], runs),
        "speedup": lambda: speedup_table(times[times["target"].isin(SHARES)], runs, rewards),
        "non_inferiority": lambda: _non_inferiority(tables["speedup"]),
        "stable_rates": lambda: stable_rates(cells),
        "frontier": lambda: frontier(cells),
        "ablation": lambda: ablation_table(runs, cells, column),
        "step_controls": lambda: step_controls(cells, column),
        "cost": lambda: cost_table(results),
        "answers": lambda: answers_table(tables["ranking"], tables["pairs"], tables["choices"], tables["by_task"]),
    }
    for name, compute in track(steps.items(), "comparing methods", len(steps)):
        tables[name] = compute()
    found = Findings(tables, cells_behind(rewards.table, runs))
    shares = column != RAW
    found.statements += [*task_rows(found), *answers(found, shares), *disagreements(found), *next_steps(found, shares)]
    found.statements += [*say.limits(found), *say.beaten(found), *say.tuning(found)]
    found.statements += [*effects.stability(found), *effects.ablation(found), *effects.step_controls(found)]
    found.statements += [*effects.targets(found), *effects.speedup(found), *effects.cost(found)]
    return found


def _non_inferiority(speedup: pd.DataFrame) -> pd.DataFrame:
    return speedup[speedup["share"].isin(NOT_INFERIOR)].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True)
class Compare(Analysis):
    """`vcpo-bench lab analyze compare`."""

    name = "compare"
    summary = "Which method wins at which lag, at its best learning rate"

    replications: int = integer(REPLICATIONS, minimum=10)

    def run(self, results: Results) -> Findings:
        """See `analyze_compare`."""
        return analyze_compare(results, self.replications)
