"""The page of the study of `diagnose` says what its tables say."""

import re
from pathlib import Path

import pandas as pd
import pytest

STUDY = Path(__file__).parents[2] / "docs" / "studies" / "diagnose"
PAGE = (STUDY / "README.md").read_text(encoding="utf-8")


def test_who_speaks() -> None:
    table = pd.read_csv(STUDY / "speaks.csv")
    for runs, part in table.groupby("runs"):
        section = PAGE.split(f"| **{runs}** |")[1].split("| **")[0]
        assert section.startswith(f" of {part['broken'].iloc[0]} | of {part['healthy'].iloc[0]} |")
        for row in part.to_dict("records"):
            assert f"\n| {row['tool']} | {row['broken_spoken']} | {row['healthy_spoken']} |" in section


def test_causes() -> None:
    table = pd.read_csv(STUDY / "causes.csv")
    assert set(table["runs"]) == {6}
    wide = table.pivot_table(index="planted", columns="tool", values="named", sort=False)
    assert "| planted | " + " | ".join(wide.columns) + " |" in PAGE
    for cause, row in wide.iterrows():
        assert f"| {cause} | " + " | ".join(f"{one:.0f}" for one in row) + " |" in PAGE


@pytest.mark.parametrize("tool", ["vcpo-bench, TRL log", "vcpo-bench, verl log", "rlprobe, its own calls"])
def test_onsets(tool: str) -> None:
    row = pd.read_csv(STUDY / "onsets.csv").set_index("tool").loc[tool]
    text = " ".join(PAGE.split())
    name = "`diagnose` median error" if tool.startswith("vcpo") else "rlprobe"
    assert f"{name} {row['median_error']:.0f}, at most {row['largest_error']:.0f}" in text


def test_sentences() -> None:
    table = pd.read_csv(STUDY / "speaks.csv").set_index(["runs", "tool"])
    theirs, ours = table.loc["recorded", "rldoctor, verl log"], table.loc["recorded", "vcpo-bench, verl log"]
    text = " ".join(PAGE.split())
    found = f"found {theirs['broken_spoken']} of the {theirs['broken']} recorded failures"
    assert f"{found}, `diagnose` {ours['broken_spoken']}" in text
    assert f"at the price of {theirs['healthy_spoken']} of {theirs['healthy']} healthy runs" in text
    onsets = pd.read_csv(STUDY / "onsets.csv").set_index("tool")
    assert f"rlwatch {onsets.loc['rlwatch, its own calls', 'median_error']:.0f}," in text
    assert onsets.loc["rldoctor, TRL log", "runs_with_a_step"] == 0
    assert re.search("rldoctor names no step", text)
