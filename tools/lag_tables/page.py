"""Writes `docs/studies/realized-lags`: `python tools/lag_tables/page.py`. A test fails when it is not current."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from lag_tables.lags import table

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
FOLDER = STUDIES / "realized-lags"
PAGE, TABLE = FOLDER / "README.md", FOLDER / "lags.csv"
TOOL = "tools/lag_tables/page.py"


def answer(lags: pd.DataFrame) -> str:
    """What the table says, in sentences."""
    archived = lags[lags["archived"].notna()]
    exact = archived[(archived["lowest"] == archived["asked"]) & (archived["highest"] == archived["asked"])]
    lagged = lags[(lags["asked"] > 1) & lags["runs"].notna()]
    counts = lagged.groupby("study")[["early", "perhaps", "failed"]].sum().astype(int)
    early = ", ".join(
        f"{row['early']} (+{row['perhaps']}) of {row['failed']} ({name})"
        for name, row in counts.iterrows()
        if row["failed"]
    )
    recorded = f"{len(exact)} of {len(archived)} rows with recorded updates ({int(archived['archived'].sum())} runs)"
    return (
        f"- In {recorded} every trajectory after the fill has exactly the requested lag.\n"
        "- Failures at lags above 1 that began before the requested lag was reached (and that may have, between two "
        f"evaluations), by study: {early}.\n"
    )


def shown(lags: pd.DataFrame) -> str:
    """The table as Markdown, with empty cells where a study does not ship what they need."""
    counts = [name for name in lags.columns if name not in ("study", "task", "mean")]
    texts = {name: lags[name].map(lambda value: "" if pd.isna(value) else str(int(value))) for name in counts}
    return markdown(lags.assign(**texts))


def made(lags: pd.DataFrame) -> str:
    """The page, with its parts made anew."""
    return filled(PAGE.read_text(encoding="utf-8"), {"answer": answer(lags), "lags": shown(lags)}, TOOL)


def main() -> None:
    """Write the table and the page."""
    lags = table(STUDIES)
    lags.to_csv(TABLE, index=False, float_format="%.6g")
    PAGE.write_text(made(lags), encoding="utf-8")


if __name__ == "__main__":
    main()
