"""Every registered method on responses of variable length: does it train, and at which of three rates?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from short_studies.contrasts import best_rate
from short_studies.study import Study, Tables, short
from vcpo_bench.bench.cells.grid_spec import GridSpec

TASK, LAG, STEPS, PROMPTS = "walk-eos", 16, 60, 4
RATES, SEEDS = (1e-4, 2e-4, 4e-4), (0, 1, 2)
GRID = GridSpec(("all",), (LAG,), SEEDS, (TASK,), RATES, settings=short(STEPS, PROMPTS))


def tables(runs: pd.DataFrame) -> Tables:
    """One row per method, and one for the synchronous control."""
    rows = []
    for (method, lag), own in runs.groupby(["method", "staleness"], sort=False):
        rate, edge = best_rate(own)
        at_best = own.loc[own["lr"] == rate, "final_reward"]
        row = {
            "method": method,
            "lag": lag,
            "realized_lag": own["lag"].mean(),
            "best_rate": f"{rate:g}",
            "at_edge": "yes" if edge else "",
        }
        row |= {
            "start": own["start_reward"].mean(),
            "reward": at_best.mean(),
            "lowest": at_best.min(),
            "highest": at_best.max(),
        }
        row |= {f"reward_at_{tried:g}": own.loc[own["lr"] == tried, "final_reward"].mean() for tried in RATES}
        row |= {"failed": f"{int(own['failed'].sum())} of {len(own)}", "errors": int((own["status"] == "error").sum())}
        rows.append(row)
    return {"methods": pd.DataFrame(rows).sort_values("reward", ascending=False).reset_index(drop=True)}


def answer(made: Tables) -> list[str]:
    """Whether every method ran, how many runs failed, and what the synchronous control earned."""
    table = made["methods"]
    own, control = table[table["lag"] == LAG], table[table["lag"] == 0]
    counts = np.array([[int(part) for part in text.split(" of ")] for text in own["failed"]])
    never = int((counts[:, 0] == 0).sum())
    lines = [
        f"{len(own)} methods, {counts[:, 1].sum()} runs: {int(own['errors'].sum())} ended in an error, "
        f"{counts[:, 0].sum()} failed by the rule of collapse; {never} methods failed in none of theirs.",
        f"{int((own['at_edge'] == 'yes').sum())} methods have their best mean at an edge of the three rates.",
    ]
    ends, start = own[[f"reward_at_{rate:g}" for rate in RATES]].to_numpy(float), own["start"].to_numpy(float)
    below = int((ends < start[:, None]).sum())
    lines.append(
        f"{below} of {ends.size} means (method at a rate) end below the start of {start.mean():.2f}. "
        f"After {STEPS} updates that is a loss, and not yet what the rule of collapse calls one."
    )
    if len(control):
        lines.append(f"Synchronous `reinforce` earns {control['reward'].iloc[0]:.2f} at its best rate.")
    return lines


STUDY = Study("every-method", 3, (GRID,), 1.7, ("methods",), tables, answer)
