"""The page of the prediction study says what its intervals are worth, with numbers of its own tables."""

import re
from pathlib import Path

import pandas as pd

STUDY = Path(__file__).parents[2] / "docs" / "studies" / "prediction"
PAGE = (STUDY / "README.md").read_text()
CONFIGURATION = ["task", "method", "staleness", "lr"]


def test_how_many_configurations_decide_the_fate_of_all_their_seeds() -> None:
    runs = pd.read_csv(STUDY / "tables" / "runs.csv")
    failed = runs["collapsed"] + runs["nan"]
    alike = (failed == 0) | (runs["healthy"] == 0)
    assert not runs.duplicated(CONFIGURATION).any()
    said = " ".join(PAGE.split())
    assert f"in {alike.sum()} of these {len(runs)} configurations all or none failed" in said
    scores = pd.read_csv(STUDY.parent / "protocol" / "tables" / "scores.csv")
    shares = scores.groupby(CONFIGURATION)["failed"].mean()
    assert f"and in {shares.isin([0, 1]).mean():.0%} of those of" in said
    cases = pd.read_csv(STUDY / "tables" / "placements.csv")
    assert f"the {failed.sum()} failures are of {(failed > 0).sum()} configurations" in said
    assert f"the {len(cases)} of the primary endpoint of {cases.groupby(CONFIGURATION).ngroups}" in said


def test_every_interval_of_resampled_runs_is_marked() -> None:
    """Those of null models and of random alarms, which resample nothing, are not."""
    summary = PAGE.split("## Summary")[1].split("\n## ")[0]
    bare = re.findall(r"\[-?\d\.\d\d, -?\d\.\d\d\](?!†)", summary)
    assert bare == ["[0.94, 0.96]", "[0.00, 0.08]"]
    assert "†" in PAGE.split("## Summary")[0]
    assert (STUDY / "findings.txt").read_text().startswith("Note, added later: intervals")
