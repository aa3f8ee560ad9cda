"""Every number of the page on calibration is that of its tables or of its grid."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
import yaml
from page_prose import STUDIES, prose

from vcpo_bench.bench.tasks.walk import WalkEos

STUDY = STUDIES / "calibration"
TEXT = prose(STUDY / "README.md")
MONITOR = prose(STUDIES.parent / "monitor.md")
CELLS = pd.read_csv(STUDY / "cells.csv")
CONFIGURATION = ["task", "method", "staleness", "lr"]
GRID = yaml.safe_load((Path(__file__).parents[2] / "configs" / "calibration.yaml").read_text())


def share(row: "pd.Series[float]", name: str) -> str:
    """A share with its interval in whole percent: `17% [11, 25]`."""
    value, low, high = (100 * row[f"{name}{side}"] for side in ("", "_low", "_high"))
    return f"{value:.0f}% [{low:.0f}, {high:.0f}]"


def part(table: str, signal: str = "any of them") -> "pd.Series[float]":
    """A row of one of the tables of alarms."""
    return pd.read_csv(STUDY / f"{table}.csv").set_index("signal").loc[signal]


def test_what_was_run() -> None:
    events = CELLS["event"].value_counts()
    failed = CELLS["onset"].notna()
    configurations = len(CELLS.drop_duplicates(CONFIGURATION))
    said = "{} runs, {} configurations: {} failed, {} healthy, {} stalls, {} dips. CPU."
    counts = (events["healthy"], events["stall"], events["transient dip"])
    assert said.format(len(CELLS), configurations, failed.sum(), *counts) in TEXT
    assert events.to_dict() == pd.read_csv(STUDY / "runs.csv").set_index("event")["runs"].to_dict()
    vcpo = CELLS[CELLS["method"] == "vcpo"]
    assert f"VCPO did not fail once in {len(vcpo)} runs." in TEXT
    assert vcpo["onset"].isna().all()


def test_when_they_failed() -> None:
    onset = CELLS["onset"].dropna()
    said = "{} of {} are found by update 20 and {} by update 30; {} fall before the lag they ask for is reached"
    early = (CELLS["onset"] < CELLS["staleness"]).sum()
    assert said.format((onset <= 20).sum(), len(onset), (onset <= 30).sum(), early) in TEXT
    assert (onset <= 20).mean() > 0.5
    assert "Most failures of that grid are found by update 20, before an alarm could count." in MONITOR


def test_how_often_the_alarms_are_wrong() -> None:
    held_out, tasks, before = part("parts"), part("transfer"), part("parts_previous")
    assert f"fired in {before['healthy_alarmed']:.0%} of healthy runs here" in TEXT
    said = (
        "they fire in {} of healthy runs of configurations that were held out, and in {} of tasks that were held out."
    )
    assert said.format(share(held_out, "healthy_alarmed"), share(tasks, "healthy_alarmed")) in TEXT
    assert f"They announce {share(held_out, 'recall')} of failures." in TEXT
    said = "announce {} of these failures, at the price of firing in {} of healthy runs"
    assert said.format(share(before, "recall"), share(before, "healthy_alarmed")) in TEXT
    assert f"All {held_out['n_dips']:.0f} dips were alarmed." in TEXT
    assert held_out["n_dips"] == held_out["dips_alarmed"] == (CELLS["event"] == "transient dip").sum()


@pytest.mark.parametrize("signal", list(pd.read_csv(STUDY / "parts.csv")["signal"]))
def test_the_table(signal: str) -> None:
    row = part("parts", signal)
    name = "any of the six" if signal == "any of them" else f"`{signal}`"
    rate = "{:.2g} [{:.2g}, {:.2g}]".format(*(row[f"false_per_1000{side}"] for side in ("", "_low", "_high")))
    assert f"| {name} | {share(row, 'healthy_alarmed')} | {rate} | {share(row, 'recall')} |" in TEXT


def test_the_verdict_of_diagnose() -> None:
    row = pd.read_csv(STUDY / "verdict.csv").iloc[0]
    said = "found {:.0f} of {:.0f} failures and called {:.0f} of {:.0f} other runs collapsed: {} and {}."
    found, false = row["found"] * row["n_collapsed"], row["false"] * row["n_other"]
    shown = share(row, "found"), share(row, "false")
    assert said.format(found, row["n_collapsed"], false, row["n_other"], *shown) in TEXT


def test_the_grid() -> None:
    lags, rates = (GRID[name].split(",") for name in ("staleness", "lr"))
    said = f"reinforce, tis, clip, vcpo; lags {', '.join(lags)}; learning rates {', '.join(rates)}; tasks chain, walk"
    assert said in TEXT
    assert GRID["methods"] == "reinforce,tis,clip,vcpo"
    assert GRID["task"] == "chain,walk,walk-eos"
    assert GRID["steps"] == 120
    sizes = [len(GRID[name].split(",")) for name in ("methods", "staleness", "task", "lr")]
    assert len(CELLS) == math.prod(sizes) == 180
    assert f"2 seeds; 120 updates of 128 trajectories; no controls. {2 * math.prod(sizes)} cells." in TEXT
    assert TEXT.count(f"{WalkEos.shortest} to {WalkEos().max_response} tokens") == 2
    assert f"stopped after 42 of {2 * math.prod(sizes)} cells" in TEXT


def test_the_pilot() -> None:
    row = pd.read_csv(STUDIES / "diagnose" / "speaks.csv").query("runs == 'recorded'").iloc[0]
    assert f"of the 42, {row['broken']} failed and {row['healthy']} were healthy" in TEXT
    assert row["broken"] + row["healthy"] <= 42


def test_what_the_page_on_the_monitor_says() -> None:
    whole = part("parts")
    assert f"fired in {share(whole, 'healthy_alarmed')} of {whole['n_healthy']:.0f} healthy runs" in MONITOR
    shipped = Path(__file__).parents[2] / "analysis" / "monitoring" / "default_detectors.json"
    assert len(json.loads(shipped.read_text())["detectors"]) == 6
    recall = pd.read_csv(STUDIES / "prediction" / "tables" / "episodes.csv").set_index("signal")["recall"]
    five = recall[["reward_low", "token_ess", "reward_drop", "ess", "kl"]]
    assert (
        f"the five single detectors of its table announced {100 * five.min():.0f} to {100 * five.max():.0f}%" in MONITOR
    )
    assert "announced two thirds" not in TEXT + MONITOR
