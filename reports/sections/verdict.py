"""The verdict in sentences, each generated from a test with its interval; an interval that crosses zero is said to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.intervals import t_interval
from vcpo_bench.reports.document import Prose, Sentence, sentence
from vcpo_bench.reports.numbers import Ledger, Number
from vcpo_bench.reports.sections.scores import describe
from vcpo_bench.reports.study import Setting, Study
from vcpo_bench.reports.words import count, fixed, interval, listing, rate

UNCORRECTED = "reinforce"


def verdict(study: Study, ledger: Ledger) -> list[Prose]:
    """A paragraph on what was run, then one statement per setting, then what collapsed."""
    statements = [one for setting in study.settings if (one := _comparison(study, ledger, setting)) is not None]
    blocks = [Prose([_extent(study)])]
    if statements:
        blocks.append(Prose(statements, bullets=True))
    blocks.append(Prose([_collapses(study)]))
    return blocks


def _extent(study: Study) -> Sentence:
    cells = study.cells
    methods = count(len(study.methods), "method")
    lags = listing([str(lag) for lag in sorted(cells["staleness"].unique())])
    rates = listing([rate(lr) for lr in sorted(cells["lr"].unique())])
    tasks = listing([str(task) for task in sorted(cells["task"].unique())])
    seeds = count(cells["seed"].nunique(), "seed")
    text = f"{count(len(cells), 'training run')}: {methods} on {tasks}, lag {lags}, learning rate {rates}, {seeds}."
    return sentence(text)


def _comparison(study: Study, ledger: Ledger, setting: Setting) -> Sentence | None:
    """Who ends highest in a setting and whether the seeds separate it from the next and from no correction."""
    finals = {name: _finals(study, setting, name) for name in study.methods}
    finals = {name: rewards for name, rewards in finals.items() if len(rewards)}
    if len(finals) < 2:
        return None
    ranked = sorted(finals, key=lambda name: (-float(finals[name]["final_reward"].mean()), name))
    place = f"{setting.task}, lag {setting.lag}, lr {rate(setting.lr)}"
    if setting.regime != "fifo":
        place += f", {setting.regime}"
    best = _mean(ledger, setting, ranked[0], finals[ranked[0]])
    parts: list[str | Number] = [f"{place}: {ranked[0]} ends highest at ", best]
    rivals = [ranked[1]] + [name for name in (UNCORRECTED,) if name in ranked[2:]]
    for position, rival in enumerate(rivals):
        parts.append("; " if position == 0 else ", and ")
        parts += _difference(ledger, setting, ranked[0], rival, finals)
    return sentence(*parts, ".")


def _finals(study: Study, setting: Setting, method: str) -> pd.DataFrame:
    """Key and final evaluation reward by seed, of the cells that have one."""
    runs = study.runs(setting, method)
    runs = runs[(runs["status"] != "error") & runs["final_reward"].notna()]
    return runs.drop_duplicates("seed").set_index("seed")[["key", "final_reward"]]


def _mean(ledger: Ledger, setting: Setting, method: str, runs: pd.DataFrame) -> Number:
    how = "mean over seeds of the last sampled_reward among a cell's evaluations, each seed once"
    about = (*describe(setting), method)
    mean = float(runs["final_reward"].mean())
    return ledger.add("highest", about, mean, how, runs["key"], columns=("final_reward",), text=fixed(mean))


def _difference(
    ledger: Ledger, setting: Setting, best: str, rival: str, finals: dict[str, pd.DataFrame]
) -> list[str | Number]:
    both = finals[best].add_suffix("_best").join(finals[rival].add_suffix("_rival"), how="inner")
    if len(both) < 2:
        return [f"with {count(len(both), 'seed')} in common nothing can be said about its difference to {rival}"]
    paired = (both["final_reward_best"] - both["final_reward_rival"]).to_numpy(np.float64)
    low, high = t_interval(paired)
    value = ledger.add(
        "difference",
        (*describe(setting), f"{best} minus {rival}"),
        float(paired.mean()),
        "mean over seeds of the difference of final rewards at the same seed, with a 95% Student-t interval",
        [*both["key_best"], *both["key_rival"]],
        columns=("final_reward",),
        text=f"{fixed(float(paired.mean()))} {interval(low, high)}",
    )
    if low > 0:
        return [f"above {rival} by ", value]
    return [f"its lead over {rival}, ", value, ", is not distinguishable from zero"]


def _collapses(study: Study) -> Sentence:
    cells = study.cells
    collapsed = cells[cells["collapsed"]]
    if collapsed.empty:
        return sentence(f"None of the {count(len(cells), 'run')} collapsed.")
    by_method = collapsed.groupby("method").size().sort_values(ascending=False)
    totals = {str(name): int(size) for name, size in cells.groupby("method").size().items()}
    words = listing([f"{name} {size} of {totals[str(name)]}" for name, size in by_method.items()])
    return sentence(f"Collapsed, over all settings: {words}.", tone="bad")
