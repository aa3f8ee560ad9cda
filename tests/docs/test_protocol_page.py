"""Every number of the protocol's page is recomputed from its tables, task by task."""

import pandas as pd
import pytest
from page_prose import STUDIES, ends, mean, number, prose, table, verdict

from vcpo_bench.analysis.comparison.best_learning_rate import CROSS_FIT
from vcpo_bench.analysis.comparison.pairs import all_pairs
from vcpo_bench.analysis.intervals import wilson

STUDY = STUDIES / "protocol"
PAGE = STUDY / "README.md"
TEXT = prose(PAGE)
SCORES = pd.read_csv(STUDY / "tables" / "scores.csv")
HOT = pd.read_csv(STUDY / "tables-three-rates" / "scores.csv").query("lr == 1e-3")
MAIN = ["vcpo", "tis", "vespo", "clip", "gspo", "reinforce"]
PLACES = [("chain", 16), ("chain", 64), ("walk", 16), ("walk", 64)]
HEAD = ["", "chain 16", "chain 64", "walk 16", "walk 64"]
PAIRS = {
    "OPOB alone, over `tis`": ("vcpo(ess=off)", "tis"),
    "OPOB, with ESS scaling on": ("vcpo", "vcpo(baseline=group)"),
    "OPOB on `clip`": ("clip+opob", "clip"),
    "ESS scaling alone, over `tis`": ("vcpo(baseline=group)", "tis"),
    "ESS scaling, with OPOB on": ("vcpo", "vcpo(ess=off)"),
    "ESS scaling on `clip`": ("clip+ess", "clip"),
    "minus `lr-matched`": ("vcpo", "vcpo(ess=off)+lr-matched"),
    "minus `lr-shuffled`": ("vcpo", "vcpo(ess=off)+lr-shuffled"),
}
MATCHED = "minus `lr-matched`"


def rewards(task: str, lag: int, method: str, rate: float = 3e-4) -> pd.Series:
    own = SCORES[(SCORES["task"] == task) & (SCORES["staleness"] == lag) & (SCORES["lr"] == rate)]
    return own[own["method"] == method].set_index("seed")["score"]


def difference(task: str, lag: int, first: str, second: str, rate: float = 3e-4) -> pd.Series:
    """Rewards of the first at 3e-4 minus those of the second at a rate, by seed."""
    return (rewards(task, lag, first) - rewards(task, lag, second, rate)).dropna()


def test_what_the_wider_intervals_of_today_would_change() -> None:
    for part in ("tables", "tables-three-rates"):
        tuned, told = pd.read_csv(STUDY / part / "tuned.csv"), pd.read_csv(STUDY / part / "pairs.csv")
        now = (all_pairs(tuned, "normalised")["p_holm"] < 0.05).sum()
        then = (told["p_holm"] < 0.05).sum()
        assert f"{now} pairs of [`{part}/pairs.csv`]" in TEXT or f"{now} of [`{part}/pairs.csv`]" in TEXT
        assert f"({part}/pairs.csv) instead of {then}" in TEXT
    assert f"widened by 1.17, the factor of that time; `compare` uses {CROSS_FIT:g} now" in TEXT


def test_what_was_run() -> None:
    main = SCORES["method"].isin(MAIN)
    synchronous = SCORES["staleness"] == 0
    assert f"({(main & ~synchronous).sum()} cells), and a synchronous run per task, rate and seed" in TEXT
    assert f"({synchronous.sum()}). All {main.sum()} ended `completed`" in TEXT
    variants = SCORES[~main]
    said = f"{variants['method'].nunique()} variants at lags 16 and 64, 3e-4, {variants['seed'].nunique()} seeds"
    assert f"{said} ({len(variants)} cells)" in TEXT
    assert set(SCORES["status"]) == {"completed"}
    assert set(SCORES["regime"]) == {"fifo"}


@pytest.mark.parametrize("task", ["chain", "walk"])
def test_scores_of_each_task(task: str) -> None:
    shown = table(PAGE, [f"`{task}`", "lag 1", "lag 16", "lag 64"])
    found = pd.read_csv(STUDY / "tables" / "by_task.csv").set_index(["task", "method", "staleness"])
    assert list(shown) == MAIN
    for method, cells in shown.items():
        for lag, cell in zip((1, 16, 64), cells, strict=True):
            row = found.loc[(task, method, lag)]
            failed = f", {row['failed']:.0f} failed" if row["failed"] else ""
            assert cell.replace("*", "") == f"{number(row['mean'])} {ends(row['low'], row['high'])}{failed}"
    best = found.loc[task]["mean"].unstack("method").idxmax(axis=1)
    assert best[[16, 64]].tolist() == (["vcpo", "vcpo"] if task == "chain" else ["vcpo", "tis"])


@pytest.mark.parametrize("name", PAIRS)
def test_paired_differences(name: str) -> None:
    control = name.startswith("minus")
    section = "## Is VCPO better than a smaller" if control else "## Which half of VCPO"
    for (task, lag), cell in zip(PLACES, table(PAGE, HEAD, section)[name], strict=True):
        own = difference(task, lag, *PAIRS[name])
        assert len(own) == 4
        assert cell.replace("*", "") == mean(own, 3), (task, lag)
        assert cell.startswith("**") == (verdict(own) in ({"more"}, {"less"})), "bold where a sign is shown"


def test_what_the_differences_show() -> None:
    found = {(n, *at): verdict(difference(*at, *pair)) for n, pair in PAIRS.items() for at in PLACES}
    for name in PAIRS:
        if name.startswith(("ESS scaling, with", "ESS scaling on", "minus")):
            assert all("equivalent" in found[name, "chain", lag] for lag in (16, 64)), name
        if name.startswith("minus"):
            assert found[name, "walk", 16] == found[name, "walk", 64] == {"undecided"}
    assert all(found["OPOB on `clip`", "walk", lag] == {"equivalent"} for lag in (16, 64))
    halves = [name for name in PAIRS if name[:3] in ("OPO", "ESS") and "clip" not in name]
    assert all(found[name, "walk", 16] == {"undecided"} for name in halves)
    ahead = difference("walk", 64, *PAIRS[MATCHED])
    assert (ahead > 0).all()
    assert (difference("walk", 64, *PAIRS["minus `lr-shuffled`"]) > 0).all()
    assert f"({number(ahead.min(), 3)} to {number(ahead.max(), 3)} above `lr-matched`)" in TEXT
    assert f"nor exclude one of {mean(ahead, 3).split()[2][:4]}" in TEXT
    on_clip = difference("walk", 16, *PAIRS["ESS scaling on `clip`"])
    assert f"with 4 of 4 seeds ({', '.join(number(one, 3) for one in on_clip)})" in TEXT
    assert found["ESS scaling on `clip`", "walk", 64] == {"undecided"}


def test_vcpo_against_tis_and_vespo_on_walk() -> None:
    assert f"vcpo minus tis is {mean(difference('walk', 16, 'vcpo', 'tis'), 3)} in reward, undecided" in TEXT
    assert verdict(difference("walk", 16, "vcpo", "tis")) == {"undecided"}
    assert f"vcpo is below tis by {mean(difference('walk', 64, 'tis', 'vcpo'), 3)}**" in TEXT
    vespo = difference("walk", 64, "vcpo", "vespo")
    assert f"minus vespo it is {mean(vespo, 3)}, equivalent" in TEXT
    assert "equivalent" in verdict(vespo)
    at_1 = pd.read_csv(STUDY / "tables" / "by_task.csv").query("task == 'walk' and staleness == 1 and method != 'gspo'")
    assert at_1["mean"].max() - at_1["mean"].min() < 0.02


def test_vcpo_on_chain_is_the_same_at_every_lag() -> None:
    found = (
        pd.read_csv(STUDY / "tables" / "by_task.csv").set_index(["task", "method", "staleness"])["mean"].sort_index()
    )
    own = found["chain", "vcpo"]
    assert "its means at lag 1 and at lag 64 are the same to 0.01" in TEXT
    assert number(own[1]) == number(own[64])
    assert all(found["chain"].xs(lag, level="staleness").idxmax() == "vcpo" for lag in (1, 16, 64))
    assert (own > 1).all()


def test_what_the_probe_says_beside() -> None:
    probe = pd.read_csv(STUDIES / "prediction" / "probe.csv").query("lag == 16 and not preconditioned")
    own = probe[(probe["method"] == "vcpo(ess=off)") & (probe["quantity"] == "snr_ratio")]
    chain = own[own["key"].str.startswith("chain") & (own["step"] < 250)]["value"]
    assert f"raises signal-to-noise {chain.min():.0f} to {chain.max():.0f} times on chain" in TEXT
    walk = own[own["key"].str.startswith("walk")]
    assert ((walk["low"] < 1) & (walk["high"] > 1)).all(), "not measurably on walk"


def test_what_was_run_at_the_third_rate() -> None:
    own = HOT[HOT["staleness"] > 0]
    assert f"adds 1e-3 at lags 16 and 64 ({own['seed'].nunique()} seeds, {len(own)} cells, and synchronous" in TEXT
    assert set(own["staleness"]) == {16, 64}
    cold = own[own["method"].isin(["tis", "reinforce"])]
    summary = prose(STUDIES / "prediction" / "README.md")
    assert f"the {cold['failed'].sum()} failures of reinforce and tis at 1e-3 come" in summary
    assert cold["failed"].all()


def test_what_few_pairs_can_show() -> None:
    assert "t-intervals with 4 to 6 pairs" in TEXT
    pairs = {len(difference(*at, *pair)) for at in PLACES for pair in PAIRS.values()}
    assert pairs | {len(difference("walk", 64, "vcpo", "tis"))} == {4, 6}
    assert f"cannot go below {2 / 2**4:.3f} with 4 pairs of one task" in TEXT


def test_a_third_of_the_rate() -> None:
    third = {at: mean(difference(*at, "vcpo", "tis", 1e-4), 3) for at in PLACES}
    assert f"lag 16, {third['chain', 16]} on chain and {third['walk', 16]} on walk" in TEXT
    assert f"{third['chain', 64]} on chain, and {third['walk', 64]} on walk, undecided" in TEXT
    low = SCORES[(SCORES["method"] == "reinforce") & (SCORES["lr"] == 1e-4)].groupby(["task", "staleness"])["failed"]
    everywhere = low.sum().loc[[("chain", 16), ("chain", 64), ("walk", 64)]]
    assert f"all {everywhere.sum()} runs failed" in TEXT
    assert (everywhere == low.size().loc[everywhere.index]).all()


def test_failures() -> None:
    own = SCORES[SCORES["method"] == "reinforce"].groupby("staleness")
    failed, rebound = own["failed"].sum(), own["event"].apply(lambda event: (event == "collapse with rebound").sum())
    assert f"({failed[16]} of 24 at lag 16, {failed[64]} of 24 at lag 64)" in TEXT
    assert f"{rebound[16]} of the {failed[16]} and {rebound[64]} of the {failed[64]}" in TEXT
    others = SCORES[SCORES["failed"] & (SCORES["method"] != "reinforce")]
    assert others[["task", "method", "staleness", "lr"]].to_numpy().tolist() == [["chain", "tis", 64, 3e-4]]
    assert f"None of 24 runs still allows a rate of {wilson(0, 24)[1]:.0%}" in TEXT


def test_synchronous_reinforce_at_a_better_rate() -> None:
    anchors = [pd.read_csv(STUDY / part / "anchors.csv").set_index("task") for part in ("tables", "tables-three-rates")]
    vcpo = rewards("chain", 1, "vcpo").mean()
    assert f"(reward {vcpo:.2f} against {anchors[0].loc['chain', 'sync']:.2f})" in TEXT
    hot = HOT[(HOT["task"] == "chain") & (HOT["method"] == "vcpo")].groupby("staleness")["score"].mean()
    said = "earns {:.2f} there, and vcpo at 1e-3 earns {:.2f} at lag 16 and {:.2f} at lag 64"
    assert anchors[1].loc["chain", "sync_lr"] == 1e-3
    assert said.format(anchors[1].loc["chain", "sync"], hot[16], hot[64]) in TEXT


def test_the_third_rate() -> None:
    for method, cells in table(PAGE, ["1e-3", *HEAD[1:]]).items():
        for (task, lag), cell in zip(PLACES, cells, strict=True):
            own = HOT[(HOT["task"] == task) & (HOT["staleness"] == lag) & (HOT["method"] == method)]
            failed = f", {own['failed'].sum()} failed" if own["failed"].any() else ""
            assert cell == mean(own["score"]) + failed
    cold = HOT[HOT["method"].isin(["tis", "reinforce"]) & (HOT["staleness"] > 0)]
    assert f"{(cold['onset'] == 10).sum()} of the {len(cold)} runs were down at the first evaluation" in TEXT
    assert f"all {cold['failed'].sum()} by update {cold['onset'].max():.0f}" in TEXT
    onsets = cold.pivot_table(index=["task", "method", "seed"], columns="staleness", values="onset")
    assert (onsets[16] == onsets[64]).all()


def test_scores_with_three_rates() -> None:
    found = pd.read_csv(STUDY / "tables-three-rates" / "by_task.csv").set_index(["task", "staleness", "method"])
    score = {at: f"{number(row['mean'])} {ends(row['low'], row['high'])}" for at, row in found.iterrows()}
    assert f"lag 16 ({score['walk', 16, 'vcpo']}; vespo {score['walk', 16, 'vespo']})" in TEXT
    assert f"its own rate: {score['walk', 64, 'tis']} against {score['walk', 64, 'vcpo']}" in TEXT
    chain = [number(found.loc[("chain", lag, name), "mean"]) for name in ("vcpo", "vespo") for lag in (16, 64)]
    assert chain[0] == chain[1]
    assert f"({chain[0]} at both lags; vespo {chain[2]} and {chain[3]})" in TEXT


def test_medians_that_cannot_be_recomputed() -> None:
    targets = pd.read_csv(STUDY / "tables" / "targets.csv")
    empty = targets[targets["median_updates"].isna()].set_index(["method", "staleness", "target"])
    assert {("clip", 64, 0.75), ("gspo", 64, 0.5)} == set(empty.index)
    assert (empty[["reached", "total"]] == [6, 12]).all(axis=None)
