"""What the estimator probe found: one row per cell, checkpoint and method."""

from __future__ import annotations

from functools import partial

from vcpo_bench.reports.document import Block, Picture
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.probe import estimator_probe
from vcpo_bench.reports.sections.analysis_blocks import Shown, judged_table
from vcpo_bench.reports.study import Study

_QUANTITIES = {
    "snr": "signal/noise",
    "snr_along_ratio": "signal along the truth, ratio to the first",
    "gain": "gain",
    "bias_sq": "squared bias",
    "cosine": "cosine",
    "step_scale": "step scale",
}

_RUN = {
    "task": Shown("task", "name"),
    "method": Shown("run of", "name"),
    "lr": Shown("lr", "rate"),
    "seed": Shown("seed", "name"),
    "step": Shown("update", "name"),
    "lag": Shown("lag", "name"),
    "update_of": Shown("step by", "name"),
}


def probe(study: Study, ledger: Ledger) -> list[Block]:
    """The figure and its table; nothing where no cell was probed."""
    rows = study.results.probes
    if rows.empty:
        return []
    rows = rows[rows["preconditioned"].astype(bool) & rows["quantity"].isin(_QUANTITIES)]
    keys = ["key", "step", "lag", "update_of"]
    rows = rows.rename(columns={"method": "update_of"})
    values = {
        name: rows.pivot_table(index=keys, columns="quantity", values=name, sort=False, dropna=False).dropna(how="all")
        for name in ("value", "low", "high")
    }
    wide = values["value"].reset_index()
    shown = [name for name in _QUANTITIES if name in wide]
    for quantity in shown:
        for end in ("low", "high"):
            wide[f"{quantity}_{end}"] = values[end][quantity].reindex(values["value"].index).to_numpy()
    runs = study.cells[["key", "task", "method", "staleness", "lr", "seed"]]
    described = runs.merge(wide, on="key").sort_values(["task", "key", "step"], kind="stable")
    described["step"], described["lag"] = described["step"].astype(int), described["lag"].astype(int)
    columns = _RUN | {name: Shown(_QUANTITIES[name], digits=3, interval="own") for name in shown}
    caption = (
        "Updates after the optimizer's preconditioning on batches drawn again from the lagged policy, against the "
        "gradient of a large on-policy sample; rows of lag 0 use fresh batches. Signal/noise |E u|²/tr Var u; gain "
        "<E u, g>/|g|²; squared bias |E u - g|²/|g|²; cosine: mean over batches. 95% bootstrap intervals."
    )
    table = judged_table(study, ledger, "probe", described, caption, columns)
    return [Picture(partial(estimator_probe, study), wide=True), *([table] if table else [])]
