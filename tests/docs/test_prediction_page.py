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


def test_what_simulated_studies_show_is_said_alike() -> None:
    """The simulation is a test of its own, tests/analysis/prediction/test_shared_fates.py."""
    assert "in 40% when runs are resampled, in 6.5% of 400 when configurations are" in " ".join(PAGE.split())
    other = " ".join((STUDY.parents[1] / "analysis.md").read_text().split())
    assert "told from chance in 6.5% of 400 simulated studies, and in 40% where runs are resampled" in other
    source = (STUDY.parents[2] / "tests" / "analysis" / "prediction" / "test_shared_fates.py").read_text()
    assert "assert by_run >= 35" in source
    assert "assert by_configuration <= 15" in source


def test_every_interval_of_resampled_runs_is_marked() -> None:
    """Those of null models and of random alarms, which resample nothing, are not."""
    summary = PAGE.split("## Summary")[1].split("\n## ")[0]
    bare = re.findall(r"\[-?\d\.\d\d, -?\d\.\d\d\](?!†)", summary)
    assert bare == ["[0.94, 0.96]", "[0.00, 0.08]"]
    assert "†" in PAGE.split("## Summary")[0]
    assert (STUDY / "findings.txt").read_text().startswith("Note, added later: intervals")
