"""The findings on cold starts, and what the study's page says by hand, are those of its runs and archives."""

from pathlib import Path

import numpy as np
import pandas as pd
from page_prose import STUDIES, prose
from run_archives.archive import KEY, read

from vcpo_bench.records import STEPS_FILE

FOLDER = STUDIES / "cold-start"
FINDINGS, PAGE = prose(STUDIES.parent / "findings.md"), prose(FOLDER / "README.md")
RUNS = pd.read_csv(FOLDER / "runs.csv")
EFFECTS = pd.read_csv(FOLDER / "effects.csv").set_index(["effect", "task"])
LAGGED = RUNS[(RUNS["staleness"] > 1) & (RUNS["regime"] == "fifo")]
WARMED = EFFECTS.loc["warm-up - none, lags 16 and 64"]


def effect(row: "pd.Series[float]") -> str:
    """Difference and interval of a row of effects, as the page prints them."""
    return f"{row['difference']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def updates(path: Path) -> "pd.Series[float]":
    """Norm of the gradient at every update of the runs of an archive, by warm-up, seed and update."""
    packed = read(path)
    setting = {cell[KEY]: (cell["config"]["lr_warmup"], cell["config"]["seed"]) for cell in packed.facts}
    steps = packed.tables[STEPS_FILE].to_pandas()
    place = pd.DataFrame([setting[key] for key in steps[KEY]], columns=["warmup", "seed"])
    return steps.join(place).set_index(["warmup", "seed", "step"])["grad_norm"]


def test_the_size_of_the_study() -> None:
    assert set(RUNS["lr"]) == {1e-3}
    assert f"{len(RUNS)} runs of REINFORCE and VCPO at 1e-3 with {RUNS['seed'].nunique()} seeds" in FINDINGS


def test_who_fails_without_a_warm_up() -> None:
    cold = LAGGED[LAGGED["lr_warmup"] == 0]
    own, vcpo = (cold[cold["method"] == method] for method in ("reinforce", "vcpo"))
    assert (own["onset"] == 10).all()
    falls = own.groupby(["task", "seed"]).ngroups
    assert f"all {len(own)} runs of REINFORCE are down by update 10 ({falls} falls:" in FINDINGS
    assert f"that the {len(own)} early failures of REINFORCE without a warm-up are {falls} falls." in PAGE
    assert (vcpo["onset"] < vcpo["staleness"]).sum() == 1
    assert f"and {vcpo['failed'].sum()} of {len(vcpo)} of VCPO fail, one of them before its lag." in FINDINGS
    first = RUNS[(RUNS["staleness"] == 1) & (RUNS["lr_warmup"] == 0) & (RUNS["method"] == "reinforce")]
    lost = [f"{rows['failed'].sum()} of {len(rows)}" for _, rows in first.groupby("task")]
    assert f"REINFORCE fails in {lost[0]} runs on `chain` and {lost[1].split(' runs')[0]} on `walk`." in FINDINGS


def test_what_a_warm_up_does() -> None:
    walk, chain = (effect(WARMED.loc[task]) for task in ("walk", "chain"))
    assert list(WARMED.loc[["walk", "chain"], "verdict"]) == ["lower", "undecided"]
    assert f"rarer (share of runs {walk}): at lag 16 REINFORCE is found down at update 20 instead of 10." in FINDINGS
    assert f"On `chain` this is undecided ({chain})." in FINDINGS
    own = LAGGED[LAGGED["method"] == "reinforce"]
    at_16 = own[(own["task"] == "walk") & (own["staleness"] == 16)].groupby("lr_warmup")["onset"].unique()
    assert [list(onsets) for onsets in at_16] == [[10], [20]]
    warm = own[own["lr_warmup"] == 20]
    assert warm["failed"].all()
    assert f"All {len(warm)} runs of REINFORCE fail all the same." in FINDINGS
    assert "**At lags 16 and 64 a warm-up delays the fall of REINFORCE, and does not prevent it.**" in FINDINGS


def test_what_a_warm_up_does_at_lag_1() -> None:
    own = RUNS[(RUNS["staleness"] == 1) & (RUNS["method"] == "reinforce")].groupby("lr_warmup")["failed"]
    failed, runs = own.sum(), own.size()
    warm, cold = (f"{failed[updates]} of {runs[updates]}" for updates in (20, 0))
    said = f"At lag 1 it fails in {warm} runs with the warm-up and in {cold} without;"
    assert f"{said} on neither task is that decided after correction." in FINDINGS
    assert set(EFFECTS.loc["warm-up - none, lag 1", "verdict"]) == {"undecided"}


def test_two_fills_are_one_run_for_the_whole_budget() -> None:
    runs = RUNS[RUNS["staleness"] > 1]
    setting = ["task", "method", "staleness", "lr_warmup", "seed"]
    ramp, hold = (own.set_index(setting)[["failed", "onset"]].sort_index() for _, own in runs.groupby("regime"))
    pd.testing.assert_frame_equal(ramp, hold)
    said = f"default fill ({len(ramp)} of {len(ramp)} pairs), and the {(~ramp['failed']).sum()} that had survived"
    assert said in FINDINGS
    for path in sorted((FOLDER / "updates").glob("*fill-hold*.zip")):
        held, ramped = (updates(one) for one in (path, path.with_name(path.name.replace("-fill-hold", ""))))
        both = pd.concat({"hold": held, "ramp": ramped}, axis=1, join="inner")
        assert len(both) == 120 * 2 * 8
        pd.testing.assert_series_equal(both["hold"], both["ramp"], check_names=False, check_exact=True)
    assert (EFFECTS.loc["hold - ramp, warm-up 20", "verdict"] == "same fates").all()


def test_what_the_page_says_of_its_tests() -> None:
    family = EFFECTS["p"].sort_values()
    tests = EFFECTS[EFFECTS["verdict"] != "same fates"]
    assert (len(EFFECTS), len(tests)) == (8, 4)
    chain = EFFECTS.loc[("warm-up - none, lag 1", "chain")]
    rank = int((family < chain["p"]).sum())
    assert np.isclose(chain["p_holm"], chain["p"] * (8 - rank))
    told = f"p of `chain` at lag 1 would be {chain['p'] * (4 - rank):.2f} instead of {chain['p_holm']:.2f}."
    assert told in PAGE
    assert f"the exact p is {WARMED.loc['walk', 'p_exact'] * 8:.2f}." in PAGE
