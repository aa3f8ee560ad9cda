"""The page of the study of `diagnose` says what its tables say."""

import re
from pathlib import Path

import pandas as pd
import pytest
from foreign_runs import ONSET, PLANTED, STEPS

from vcpo_bench.bench.tasks.walk import WalkEos

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


def test_what_the_runs_are() -> None:
    text = " ".join(PAGE.split())
    assert f"synthetic runs of {STEPS} steps with a cause at step {PLANTED} and a fall from step {ONSET}" in text
    table = pd.read_csv(STUDY / "speaks.csv").drop_duplicates("runs").set_index("runs")
    shown = table.loc["recorded", ["broken", "healthy"]].sum()
    assert "*Recorded*: 42 cells of the unfinished" in text
    assert f"and {42 - shown} with a dip or a stall are not in the table" in text
    assert "stopped after 42 of 360 cells" in " ".join((STUDY.parent / "calibration" / "README.md").read_text().split())
    assert f"Recorded runs are tasks of {WalkEos.shortest} to {WalkEos().max_response} tokens" in text


@pytest.mark.parametrize("name", ["train_trl", "train_verl"])
def test_when_the_verifier_breaks(name: str) -> None:
    source = (STUDY.parents[2] / "tools" / "diagnose_study" / f"{name}.py").read_text()
    (update,) = re.findall(r"^FAILS_AT = (\d+)$", source, flags=re.M)
    assert f"the verifier answers 0 from update {update} on" in " ".join(PAGE.split())


def test_rlwatch_fires_in_healthy_runs_too() -> None:
    table = pd.read_csv(STUDY / "speaks.csv").set_index(["runs", "tool"])
    planted, recorded = (table.loc[(runs, "rlwatch, its own calls")] for runs in ("planted", "recorded"))
    said = "fires in {} of {} healthy planted runs and in {} of {} recorded ones"
    shown = [row[name] for row in (planted, recorded) for name in ("healthy_spoken", "healthy")]
    assert said.format(*shown) in " ".join(PAGE.split())
