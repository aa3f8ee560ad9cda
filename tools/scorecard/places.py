"""Where the tables and pages of the scorecard are."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "studies" / "scorecard"
PAGE, REGISTRATION = FOLDER / "README.md", FOLDER / "registration.md"
VERDICTS = FOLDER / "verdicts.csv"
NON_INFERIORITY, PROFILE = FOLDER / "non_inferiority.csv", FOLDER / "profile.csv"
