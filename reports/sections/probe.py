"""What the estimator probe found: one row per cell, checkpoint and method."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import MISSING, fixed, interval, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.report_section import ReportSection
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
    "task": "task",
    "run_of": "run of",
    "lr": "lr",
    "seed": "seed",
    "step": "update",
    "lag": "lag",
    "method": "step by",
}
_CAPTION = (
    "Updates after the optimizer's preconditioning, on batches sampled anew from the lagged policy, against the "
    "gradient of a large on-policy sample; rows of lag 0 use fresh batches. Signal/noise |E u|²/tr Var u; gain "
    "<E u, g>/|g|²; squared bias |E u - g|²/|g|²; cosine: mean over batches. 95% bootstrap intervals."
)
_DIGITS = 3


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """The figure and its table; nothing where no cell was probed."""
    measured = _measured(study)
    if measured.empty:
        return []
    shown = [name for name in _QUANTITIES if measured["quantity"].eq(name).any()]
    rows = [_row(ledger, group, shown) for _, group in measured.groupby(["key", *_RUN], sort=False)]
    headings = [*_RUN.values(), *(f"{_QUANTITIES[name]} [95%]" for name in shown)]
    numeric = frozenset({list(_RUN).index("lr"), *range(len(_RUN), len(headings))})
    return [
        *pictures(study, "estimator-probe"),
        Table("probe", _CAPTION, headings, rows, numeric, settings=len(_RUN)),
    ]


def _measured(study: Study) -> pd.DataFrame:
    """Preconditioned measurements with their row numbers in `results.probes` and the run of each."""
    probes = study.results.probes
    if probes.empty:
        return probes
    rows = probes.assign(row=range(len(probes)))
    rows = rows[rows["preconditioned"].astype(bool) & rows["quantity"].isin(list(_QUANTITIES))]
    runs = study.cells[["key", "task", "method", "lr", "seed"]].rename(columns={"method": "run_of"})
    return runs.merge(rows, on="key").sort_values(["task", "key", "step"], kind="stable")


def _row(ledger: Ledger, measured: pd.DataFrame, shown: list[str]) -> list[TableCell]:
    """One method at one checkpoint of one cell: a row of each quantity."""
    run = measured.iloc[0].to_dict()
    entries = [TableCell(rate(run[name]) if name == "lr" else str(run[name]), sort=_sort(run[name])) for name in _RUN]
    by_quantity = {row["quantity"]: row for row in measured.to_dict("records")}
    for name in shown:
        row = by_quantity.get(name)
        if row is None:
            entries.append(TableCell(MISSING))
            continue
        text = fixed(row["value"], _DIGITS)
        if row["low"] < row["high"]:
            text += f" {interval(row['low'], row['high'], _DIGITS)}"
        value = ledger.add(
            f"probe.{name}",
            [row["key"], *(f"{column} {run[column]}" for column in ("step", "lag", "method"))],
            row["value"],
            f"measured by `vcpo-bench lab probe`: {name} of the preconditioned update",
            [row["key"]],
            table="probes",
            columns=("method", "step", "lag", "preconditioned", "quantity", "value", "low", "high", "n", "fresh"),
            rows=[row["row"]],
            text=text,
        )
        entries.append(TableCell(value.text, value, value.value))
    return entries


def _sort(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


SECTIONS = (ReportSection("probe", "Estimator probe", 200, blocks),)
