"""The findings on cold starts are those of the study's runs."""

import pandas as pd
from page_prose import STUDIES, prose

FINDINGS = prose(STUDIES.parent / "findings.md")


def effect(row: "pd.Series[float]") -> str:
    """Difference and interval of a row of effects, as the page prints them."""
    return f"{row['difference']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def test_cold_starts() -> None:
    folder = STUDIES / "cold-start"
    runs = pd.read_csv(folder / "runs.csv")
    assert set(runs["lr"]) == {1e-3}
    assert f"{len(runs)} runs of REINFORCE and VCPO at 1e-3 with {runs['seed'].nunique()} seeds" in FINDINGS
    lagged = runs[runs["staleness"] > 1]
    grown = lagged[(lagged["regime"] == "fifo") & lagged["failed"]]
    cold, warm = (grown[grown["lr_warmup"] == warmup] for warmup in (0, 20))
    early = (cold["onset"] < cold["staleness"]).sum()
    assert f"At lags 16 and 64, {early} of {len(cold)} failures begin before" in FINDINGS
    assert f"fail at these lags in the end: {len(warm)} instead of {len(cold)}." in FINDINGS
    first = runs[(runs["staleness"] == 1) & (runs["lr_warmup"] == 0) & (runs["method"] == "reinforce")]
    lost = [f"{own['failed'].sum()} of {len(own)}" for _, own in first.groupby("task")]
    assert f"fails in {lost[0]} runs on `chain` and {lost[1]} on `walk`" in FINDINGS
    effects = pd.read_csv(folder / "effects.csv").set_index(["effect", "task"])
    own = effects.loc["warm-up - none, lags 16 and 64"]
    walk, chain = (effect(own.loc[task]) for task in ("walk", "chain"))
    assert list(own.loc[["walk", "chain"], "verdict"]) == ["lower", "undecided"]
    assert f"rarer on `walk` (share of runs {walk});" in FINDINGS
    assert f"on `chain` this is undecided ({chain})." in FINDINGS


def test_the_fill_changes_no_fate() -> None:
    runs = pd.read_csv(STUDIES / "cold-start" / "runs.csv").query("staleness > 1")
    setting = ["task", "method", "staleness", "lr_warmup", "seed"]
    grow, hold = (own.set_index(setting)[["failed", "onset"]].sort_index() for _, own in runs.groupby("regime"))
    pd.testing.assert_frame_equal(grow, hold)
    assert f"all {len(grow)} pairs of runs agree, and the {grow['failed'].sum()} that fail do so" in FINDINGS
