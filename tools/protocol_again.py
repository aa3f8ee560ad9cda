"""The protocol's runs made again: when they reach synchronous training. `python tools/protocol_again.py [RESULTS]`.

RESULTS holds the runs of rules 1.0, unpacked from `docs/studies/protocol/updates`. Writes `again/speedup.csv` and
`again/cells.csv` (how each run ended) of that study, and the part of its page that follows; without a folder, the page
only. No training.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from make_calibration import cells
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from vcpo_bench.analysis.commands.compare import analyze_compare
from vcpo_bench.analysis.results import Results, load_comparable

STUDY = Path(__file__).resolve().parents[1] / "docs" / "studies" / "protocol"
TABLE, CELLS, PAGE = STUDY / "again" / "speedup.csv", STUDY / "again" / "cells.csv", STUDY / "README.md"
TOOL = "tools/protocol_again.py"
METHODS = ("vcpo", "vespo", "gspo", "clip", "tis", "reinforce")
RATES = (1e-4, 3e-4)
SHOWN = 0.9
"""Share of the synchronous gain on the page; the table has the others."""


def of_the_protocol(results: Results) -> Results:
    """The cells of the preset `protocol`, without the third rate and the controls."""
    cells = results.cells
    own = cells["method"].isin(METHODS) & cells["lr"].round(9).isin(RATES)
    return results.select(cells.loc[own, "key"])


def speedup(results: Results) -> pd.DataFrame:
    """`speedup` of `analyze compare`, without seconds: the runs shared a machine."""
    table = analyze_compare(of_the_protocol(results)).tables["speedup"]
    return table[[name for name in table if not str(name).startswith("seconds")]]


def by_lag(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task and method: updates to `SHOWN` of the gain at each lag, or how many runs arrive.

    Args:
        table: Of `speedup`.
    """
    own = table[table["share"] == SHOWN]
    rows = own.assign(said=[_arrival(row) for _, row in own.iterrows()], lag="lag " + own["staleness"].astype(str))
    wide = rows.pivot(index=["task", "method"], columns="lag", values="said")
    return wide[[f"lag {lag}" for lag in sorted(own["staleness"].unique())]].reset_index()


def _arrival(row: pd.Series) -> str:
    if row["reached"] < row["total"]:
        return f"{row['reached']:.0f} of {row['total']:.0f} arrive"
    low, high = row["updates_ratio_low"], row["updates_ratio_high"]
    return f"{row['updates']:.0f} ({row['updates_ratio']:.2f} [{low:.2f}, {high:.2f}])"


def refresh() -> None:
    """Write the part of the page that follows from the shipped table."""
    parts = {"speedup": markdown(by_lag(pd.read_csv(TABLE)))}
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), parts, TOOL), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Read the runs if a folder is named, and write what follows from them."""
    if arguments:
        TABLE.parent.mkdir(exist_ok=True)
        results = load_comparable([Path(one) for one in arguments])
        speedup(results).to_csv(TABLE, index=False, float_format="%.6g")
        cells(results).to_csv(CELLS, index=False)
    refresh()


if __name__ == "__main__":
    main(sys.argv[1:])
