"""A table of every cell: what a printed report has instead of a page per cell."""

from __future__ import annotations

from vcpo_bench.reports.document import Table, TableCell
from vcpo_bench.reports.formatting import fixed, rate, whole
from vcpo_bench.reports.study import Study

_HEADINGS = ["task", "lr", "lag", "method", "seed", "updates", "start", "best", "final", "ESS", "event", "onset"]


def all_cells(study: Study) -> Table:
    """One row per cell: its settings, rewards, median ESS ratio and how it ended."""
    ordered = study.cells.sort_values(["task", "lr", "staleness", "method", "seed"], kind="stable")
    rows = []
    for cell in ordered.to_dict("records"):
        texts = [str(cell["task"]), rate(cell["lr"]), str(cell["staleness"]), str(cell["method"]), str(cell["seed"])]
        texts.append(whole(cell["steps_done"]))
        texts += [fixed(cell[name]) for name in ("start_reward", "best_reward", "final_reward", "median_ess")]
        event = TableCell(str(cell["event"]), tone="bad" if cell["collapsed"] else "")
        rows.append([*(TableCell(text) for text in texts), event, TableCell(whole(cell["onset"]))])
    caption = (
        "Every cell: settings, updates done, start, best and final reward, median ESS ratio before a "
        "collapse, and the verdict of the collapse rule on its evaluations with the onset of a collapse."
    )
    return Table("all-cells", caption, _HEADINGS, rows, numeric=frozenset({1, 2, 4, 5, 6, 7, 8, 9, 11}), settings=5)
