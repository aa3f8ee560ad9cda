"""Every number of the study of TRL is recomputed from the tables that ship, and these from the curves."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "studies" / "trl"
TEXT = " ".join((STUDY / "README.md").read_text().split())
PAIR = ["method", "lag"]


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, ModuleType]]:
    folder = str(ROOT / "tools" / "trl_study")
    sys.path.insert(0, folder)
    names = ("settings", "tables", "page")
    yield {name: __import__(name) for name in names}
    sys.path.remove(folder)
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def curves() -> pd.DataFrame:
    return pd.concat([pd.read_csv(path) for path in STUDY.glob("curves-*.csv.gz")])


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return pd.read_csv(STUDY / "runs.csv")


def test_the_page_has_the_tables(tools: dict[str, ModuleType]) -> None:
    page = tools["page"]
    assert page.PAGE.read_text() == page.render(), "run: python tools/trl_study/page.py"


def same(found: pd.DataFrame, shipped: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found.reset_index(drop=True), shipped, check_dtype=False, rtol=1e-4, atol=1e-5)


def test_the_tables_follow_from_the_curves(
    tools: dict[str, ModuleType], curves: pd.DataFrame, runs: pd.DataFrame
) -> None:
    tables = tools["tables"]
    complete = curves[curves["seed"].isin(runs["seed"].unique())]
    order = ["side", *PAIR, "seed"]
    made = tables.run_table(complete).sort_values(order)
    same(made, runs.sort_values(order).reset_index(drop=True))
    same(tables.agreement_table(runs), pd.read_csv(STUDY / "agreement.csv"))


def test_only_complete_seeds_count(tools: dict[str, ModuleType], runs: pd.DataFrame) -> None:
    settings = tools["settings"]
    arms = len(settings.METHODS) * len(settings.LAGS)
    assert set(runs.groupby(["side", "seed"]).size()) == {arms}
    seeds = sorted(runs["seed"].unique())
    assert seeds == list(settings.SEEDS[: len(seeds)])
    assert set(runs["updates"]) == {settings.UPDATES}
    assert set(runs.groupby("seed")["side"].nunique()) == {2}


def test_the_lag_is_exact_in_every_update(curves: pd.DataFrame) -> None:
    rows = curves[curves["update"] > 0]
    wanted = np.minimum(rows["update"] - 1, rows["lag"])
    assert (rows["lag_mean"] == wanted).all()
    assert (rows["lag_max"] == wanted).all()


def test_what_is_said_of_the_weights(tools: dict[str, ModuleType]) -> None:
    tables = tools["tables"]
    registered = tables.exact_table(pd.read_csv(STUDY / "exact.csv.gz"))
    assert len(registered) == 12
    assert not registered["agrees"].any()
    assert registered["1-19"].max() < 4e-5
    assert registered["20"].min() > tables.WEIGHTS
    again = tables.exact_table(pd.read_csv(STUDY / "exact-tokens.csv.gz"))
    assert len(again) == 12
    assert again["agrees"].all()
    assert again["21-40"].max() < tables.WEIGHTS
    assert "As registered, no arm passes" in TEXT
    assert "largest difference is below 4e-5" in TEXT
    together = max(registered["1-19"].max(), again[["1-19", "20", "21-40"]].max().max())
    assert f"both make the same weights to {together * 1e5:.0f} parts in 10^5." in TEXT
    other = " ".join((ROOT / "docs" / "trl.md").read_text().split())
    assert f"the weights agree to {together * 1e5:.0f} parts in 10^5:" in other


def test_what_is_said_of_the_outcomes(runs: pd.DataFrame) -> None:
    agreement = pd.read_csv(STUDY / "agreement.csv")
    assert list(agreement["verdict"].value_counts()[["undecided", "equivalent"]]) == [1, 11]
    assert set(agreement["seeds"]) == {5}
    assert "end alike in eleven of twelve rows" in TEXT
    (open_row,) = agreement[agreement["verdict"] == "undecided"][PAIR].itertuples(index=False)
    assert tuple(open_row) == ("tis", 32)
    assert "No row is *different*" in TEXT
    assert f"the t interval is {stats.t.ppf(0.95, 4) / 5**0.5:.1f} standard deviations" in TEXT
    assert set(runs["success_start"].round(2)) == {0.32}
    assert "the start has 0.32" in TEXT


def test_what_is_said_of_single_differences(runs: pd.DataFrame) -> None:
    agreement = pd.read_csv(STUDY / "agreement.csv")
    wide = runs.pivot(index=[*PAIR, "seed"], columns="side", values="success")
    difference = wide["trl"] - wide["ours"]
    assert f"The largest mean difference is {agreement['difference'].abs().max():.2f}" in TEXT
    assert f"between single runs {difference.abs().max():.2f} (`tis` at lag 32, in both directions)" in TEXT
    assert difference.abs().idxmax()[:2] == ("tis", 32)
    at = difference.loc[("tis", 32)]
    assert at.min() < 0 < at.max()


def test_what_is_said_of_rounding(runs: pd.DataFrame) -> None:
    on_policy = runs[(runs["lag"] == 0) & (runs["method"] != "vcpo")]
    spread = on_policy.groupby(["side", "seed"])["success"].agg(lambda values: values.max() - values.min())
    assert spread["trl"].max() == 0
    assert f"they part by up to {spread['ours'].max():.3f}" in TEXT


def test_the_verdict_is_the_registered_one(tools: dict[str, ModuleType]) -> None:
    verdict = tools["tables"].verdict
    assert verdict(-0.04, 0.03, -0.06, 0.05) == "equivalent"
    assert verdict(0.01, 0.049, 0.005, 0.06) == "equivalent"
    assert verdict(0.02, 0.09, 0.01, 0.1) == "different"
    assert verdict(-0.09, -0.02, -0.1, -0.01) == "different"
    assert verdict(-0.06, 0.02, -0.1, 0.06) == "undecided"
    assert verdict(np.nan, np.nan, np.nan, np.nan) == "undecided"
