"""Where ESS is blind: the failed runs of each method among controls of any method, from a table that ships."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.wording import listed

SIGNALS = {"ess": "ess", "kl": "kl", "reward_low": "reward_low", "learning_rate": "lr"}
"""Column here, and the signal."""
LEAST = 8
"""Failed runs that a method needs to be named."""
CHANCE = 0.5
_NAMES = {"kl": "the KL", "reward_low": "a low training reward", "learning_rate": "the learning rate"}


def by_method(placements: pd.DataFrame) -> pd.DataFrame:
    """Mean placement of the failed runs of each method on each task: their AUROC, without an interval.

    Args:
        placements: Of `analyze prediction`: one row per failed run, `above_*` the share of its controls below it.

    Returns:
        Columns `task`, `method`, `failed`, those of `SIGNALS`, and `wrong_side`: runs that lie below half of their
        controls by ESS.
    """
    rows = []
    for (task, method), own in placements.groupby(["task", "method"], sort=True):
        row = {"task": task, "method": method, "failed": len(own)}
        row |= {name: own[f"above_{signal}"].mean() for name, signal in SIGNALS.items()}
        rows.append(row | {"wrong_side": int((own["above_ess"] < CHANCE).sum())})
    return pd.DataFrame(rows)


def blindest(table: pd.DataFrame) -> str:
    """The method and task whose failures ESS ranks worst, and what ranks them better."""
    known = table[table["failed"] >= LEAST].sort_values("ess")
    row = known.iloc[0].to_dict()
    said = listed([f"{words} has {row[name]:.2f}" for name, words in _NAMES.items()])
    return (
        f"**ESS is nearest to blind for `{row['method']}` on `{row['task']}`**: AUROC {row['ess']:.2f} over "
        f"{row['failed']} failed runs, {row['wrong_side']} of which lie below half of their controls. There {said}. "
        f"Of the other {len(known) - 1} methods and tasks with at least {LEAST} failures ESS has "
        f"{known['ess'].iloc[1]:.2f} to {known['ess'].iloc[-1]:.2f}. The lowest of {len(known)} is low by "
        "chance too, and controls are of other methods, at other learning rates: this need not hold among runs of one."
    )
