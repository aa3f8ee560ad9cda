"""Writes the tables of the study into its page, from the shipped tables.

    python tools/trl_study/page.py            # after run.py

A test fails when the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pandas as pd
from tables import exact_table

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies" / "trl"
PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- made by tools/trl_study/page.py: {} -->\n", "<!-- end -->\n"


def weights() -> str:
    """Question 1: as registered, and with rewards from the tokens."""
    head = "| method | lag | as registered: 1-19 | 20 | 21-40 | rewards from tokens: 1-20 | 21-40 |"
    lines = [head, "|---" * 7 + "|"]
    tokens = exact_table(pd.read_csv(FOLDER / "exact-tokens.csv.gz")).set_index(["method", "lag"])
    for row in exact_table(pd.read_csv(FOLDER / "exact.csv.gz")).to_dict("records"):
        again = tokens.loc[(row["method"], row["lag"])]
        values = [row["1-19"], row["20"], row["21-40"], max(again["1-19"], again["20"]), again["21-40"]]
        cells = [f"`{row['method']}`", str(row["lag"]), *(f"{value:.1e}" for value in values)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def outcomes() -> str:
    """Question 2."""
    lines = [
        "| method | lag | seeds | ours | TRL | TRL - ours | 90% interval | verdict | ESS ratio | step scale |",
        "|---" * 10 + "|",
    ]
    for row in pd.read_csv(FOLDER / "agreement.csv").to_dict("records"):
        interval = "none" if pd.isna(row["low90"]) else f"[{row['low90']:.3f}, {row['high90']:.3f}]"
        cells = [
            f"`{row['method']}`",
            str(row["lag"]),
            str(row["seeds"]),
            f"{row['ours']:.3f}",
            f"{row['trl']:.3f}",
            f"{row['difference']:+.3f}",
            interval,
            row["verdict"],
            f"{row['ess_ours']:.2f}, {row['ess_trl']:.2f}",
            f"{row['scale_ours']:.2f}, {row['scale_trl']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def lags() -> str:
    """Question 3."""
    runs = pd.read_csv(FOLDER / "runs.csv")
    head = "| lag requested | runs | lag of the last update, lowest and highest | updates with another lag |"
    lines = [head, "|---" * 4 + "|"]
    for lag, own in runs.groupby("lag"):
        realized = f"{own['lag_realized'].min():g}, {own['lag_realized'].max():g}"
        other = own["updates_with_other_lag"].sum()
        lines.append(f"| {lag} | {len(own)} | {realized} | {other} of {own['updates'].sum()} |")
    return "\n".join(lines) + "\n"


TABLES = {"weights": weights, "outcomes": outcomes, "lags": lags}


def render() -> str:
    """The page with its tables made anew."""
    text = PAGE.read_text()
    for name, table in TABLES.items():
        begin = BEGIN.format(name)
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table()}\n{END}{rest.split(END, 1)[1]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(render())
