"""What is an update worth? Signal and bias of every method's update, measured against the true gradient."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.formatting import rate
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, draw_line, panel_grid
from vcpo_bench.reports.plots.ticks import log_scale, over_updates, say_below
from vcpo_bench.reports.plots.zeros import mark_zeros
from vcpo_bench.reports.study import Study

_PANELS = (
    ("snr", "signal to noise", True),
    ("bias_sq", "squared bias / |g|²", True),
    ("cosine", "cosine with the true gradient", False),
)
MOST_CELLS = 3


def probed(study: Study) -> list[tuple[str, pd.DataFrame]]:
    """Title and stale, preconditioned rows of the first probed cells, in the order of task, lag and key."""
    rows = study.results.probes
    rows = rows[rows["preconditioned"].astype(bool) & (rows["method"] != "truth")] if len(rows) else rows
    cells = study.cells[study.cells["key"].isin(rows["key"])].sort_values(["task", "staleness", "key"], kind="stable")
    found = []
    for _, cell in cells.head(MOST_CELLS).iterrows():
        mine = rows[rows["key"] == cell["key"]]
        title = f"{cell['task']}, lag {cell['staleness']}, lr {rate(cell['lr'])}, run of {cell['method']}"
        found.append((title, mine[mine["lag"] == mine.groupby("step")["lag"].transform("max")]))
    return found


def estimator_probe(study: Study, sheet: Sheet) -> Plot | None:
    """A panel per probed cell and quantity, a line per method over checkpoints; None where nothing was probed."""
    cells = probed(study)
    if not cells:
        return None
    methods = list(dict.fromkeys(name for _, rows in cells for name in rows["method"]))
    columns = columns_for(sheet, len(_PANELS))
    figure, axes = panel_grid(sheet, len(cells) * len(_PANELS), columns, share_y=False)
    lines, labels = [], []
    for place, (title, rows) in enumerate(cells):
        for column, (quantity, heading, log) in enumerate(_PANELS):
            panel = place * len(_PANELS) + column
            labels.append(f"{heading}: {title}")
            axes[panel].set_title(heading if len(cells) == 1 else f"{heading}\n{title.split(',')[0]}")
            over_updates(axes[panel])
            for method in methods:
                line = _line(panel, method, rows[(rows["quantity"] == quantity) & (rows["method"] == method)])
                if line.x.size:
                    lines.append(line)
                    draw_line(axes[panel], line, methods)
            own = [line for line in lines if line.panel == panel]
            if log and own:
                say_below(axes[panel], own, log_scale(axes[panel], np.concatenate([line.y for line in own])))
    add_legend(figure, sheet, methods)
    title = "What is an update worth?"
    caption = (
        f"{title} Every method's update on many batches sampled anew from the lagged policy, against the gradient of a "
        "large on-policy sample, after the optimizer's preconditioning: signal to noise |E u|²/tr Var u, squared bias "
        f"|E u - g|²/|g|², mean cosine. 1 run per panel; band: 95% bootstrap interval over batches. "
        f"{'; '.join(title for title, _ in cells)}."
    )
    caption += mark_zeros(axes, lines, methods)
    return Plot("estimator-probe", title, caption, figure, methods, lines, "update", "value", labels)


def _line(panel: int, method: str, rows: pd.DataFrame) -> Line:
    ordered = rows[rows["value"].notna()].sort_values("step")
    x, y, low, high = (ordered[name].to_numpy(np.float64) for name in ("step", "value", "low", "high"))
    return Line(panel, method, x, y, low, high, (1,))
