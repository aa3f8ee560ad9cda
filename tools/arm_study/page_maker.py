"""The program behind the `page.py` of a study of arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from arm_study.again import agreement, moved, verdicts
from arm_study.arm_tables import run_table
from arm_study.arms import Arm
from arm_study.filled_page import write

_STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"


@dataclass(frozen=True)
class PageMaker:
    """A study's page and tables.

    Attributes:
        name: Of its folder in docs/studies.
        text: The page's text, see `filled_page.render`.
        arms: What it ran.
        columns: Of `steps.parquet`, whose means its tables need.
        since: First update that counts.
        tables: From the runs.
    """

    name: str
    text: Path
    arms: Sequence[Arm]
    columns: Sequence[str]
    since: int
    tables: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame]]

    @property
    def folder(self) -> Path:
        """Where the page is."""
        return _STUDIES / self.name

    @property
    def runs(self) -> Path:
        """The table of its runs, from which all others follow."""
        return self.folder / "runs.csv"

    @property
    def earlier(self) -> Path:
        """The table of the same runs as they had come out before they were made again."""
        return self.folder / "replaced.csv"

    def made(self) -> dict[str, pd.DataFrame | str]:
        """Every part of the page, from the shipped runs and those that they replaced."""
        runs, earlier = pd.read_csv(self.runs), pd.read_csv(self.earlier)
        tables, before = self.tables(runs), self.tables(earlier)
        others = moved(tables, before)
        told = "No verdict moved." if others.empty else f"{len(others)} of {verdicts(tables)} verdicts moved:"
        return {**tables, "moved": "" if others.empty else others, "again": f"{agreement(runs, earlier)}. {told}"}

    def main(self, arguments: Sequence[str]) -> None:
        """Take the runs from the results if a folder is named, and write what follows from them."""
        if arguments:
            found = run_table(Path(arguments[0]), self.arms, self.columns, self.since)
            found.to_csv(self.runs, index=False, float_format="%.10g")
        write(self.folder, self.text.read_text(encoding="utf-8"), self.made())
