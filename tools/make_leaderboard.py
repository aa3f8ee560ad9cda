"""Writes the entries of the leaderboard that this repository's own studies contribute, from their shipped tables.

    python tools/make_leaderboard.py

Only the protocol study ships a score for every run; the others show machinery, or have one seed.
"""

from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.comparison.leaderboard import Entry, rows_of

ROOT = Path(__file__).resolve().parents[1]
STUDIES = ROOT / "docs" / "studies"
FOLDER = STUDIES / "leaderboard"


def protocol() -> Entry:
    """The protocol study with its controls and its runs without lag."""
    scores = pd.read_csv(STUDIES / "protocol" / "tables" / "scores.csv")
    return Entry(
        name="protocol",
        title="Which stabilizer wins at which lag, at its best learning rate?",
        by="The vcpo-bench authors",
        machine="2 shared CPU cores",
        versions="a development version before vcpo-bench 0.1.0, 2026-11-21",
        rules_version="1.0",
        cells=len(scores),
        rows=rows_of(scores),
    )


def texts() -> dict[str, str]:
    """Content of each file by its name."""
    return {f"{one.name}.json": one.text() for one in (protocol(),)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
