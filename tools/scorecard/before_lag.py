"""Which failures came before the lag that was asked for: until update k a run's lag is smaller than k."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from lag_tables.lags import when

from vcpo_bench.bench.cells.settings import CellSettings

from .cells import Block
from .tables import Tables

EVERY = CellSettings().eval_every
"""Updates between two evaluations of every run of the scorecard."""


def each(tables: Tables, *blocks: Block) -> str:
    """One sentence per task and method with failures, of runs judged by update 300, as a list."""
    lines = []
    failed = _failed(tables, blocks)
    for _, own in failed.groupby(["task", "method", "staleness"], sort=False):
        one = own.iloc[0]
        lines.append(f"* On `{one['task']}` {_said(str(one['method']), int(one['staleness']), own)}.")
    return "\n".join(lines) + "\n" if lines else ""


def _failed(tables: Tables, blocks: Sequence[Block]) -> pd.DataFrame:
    runs = tables.outcomes(*blocks)
    return runs.assign(when=when(runs, EVERY))[runs["failed"]]


def _said(method: str, lag: int, own: pd.DataFrame) -> str:
    early, perhaps = (own[own["when"] == name] for name in ("early", "perhaps"))
    reached = f"before lag {lag} was reached"
    of = f"of the {len(own)} failures of `{method}`"
    at = " and ".join(f"{update:.0f}" for update in sorted(perhaps["onset"].unique()))
    if len(early) and len(perhaps):
        return f"{len(early)} {of} were found {reached}, and {len(perhaps)} at update {at} may have begun before it"
    if len(perhaps):
        return f"{len(perhaps)} {of} were found at update {at} and may have begun {reached}"
    if len(early):
        return f"{len(early)} {of} were found {reached}"
    return f"none {of} began {reached}"


def total(tables: Tables, *blocks: Block) -> str:
    """The same summed up, one sentence per task and lag; empty without a failure."""
    failed = _failed(tables, blocks)
    lines = []
    for (task, lag), own in failed[failed["staleness"] > 0].groupby(["task", "staleness"], sort=False):
        early, perhaps = ((own["when"] == name).sum() for name in ("early", "perhaps"))
        found = f"{early} of the {len(own)} failures were found before lag {lag} was reached"
        lines.append(f"* On `{task}` {found}, and {perhaps} more may have begun before it.")
    return "\n".join(lines) + "\n" if lines else ""
