"""The page of fourteen points is whole, its links lead somewhere, and its numbers are those of the tables."""

import re

import pandas as pd
import pytest
from page_prose import STUDIES, prose, table

PAGE = STUDIES / "points.md"
TEXT = prose(PAGE)
TABLES = STUDIES / "prediction" / "tables"
POINTS = table(PAGE, ["", "point", "prediction", "comparisons"])


def test_every_point_has_a_verdict_and_its_reason() -> None:
    assert list(POINTS) == [str(number) for number in range(1, 15)]
    for number, (_, verdict, comparisons) in POINTS.items():
        assert verdict in ("met", "half", "no")
        assert comparisons in ("met", "half", "no", "-")
        assert f"{number}. **{verdict.title()}.**" in TEXT
        assert (f"* **{number}.**" in TEXT) == (comparisons in ("half", "no"))


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", PAGE.read_text()))))
def test_where(link: str) -> None:
    path, _, anchor = link.partition("#")
    target = PAGE.parent / path
    assert target.exists()
    if anchor:
        heads = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w\- ]", "", head).lower().replace(" ", "-") for head in heads}


def test_numbers() -> None:
    runs = pd.read_csv(TABLES / "runs.csv")
    started, failed, healthy = runs["started"].sum(), runs[["collapsed", "nan"]].sum().sum(), runs["healthy"].sum()
    assert f"{started} runs started, {failed} failed, {healthy} healthy, none stopped, none unjudged" in TEXT
    assert not runs[["stopped", "not_judged"]].any(axis=None)
    near = runs.loc[runs["staleness"] <= 1, "healthy"].sum()
    assert f"{near} of the {healthy} healthy runs" in TEXT
    cases = pd.read_csv(TABLES / "placements.csv")
    alike = cases.groupby(["task", "method", "staleness", "lr"]).ngroups
    assert f"{len(cases)} failures are of {alike}." in TEXT
    rebound = (cases["event"] == "collapse with rebound").sum()
    assert f"{rebound} of the {len(cases)} failures of the primary endpoint" in TEXT
    few = pd.read_csv(TABLES / "matching.csv").set_index(["signal", "match"]).loc[("ess", "+rate+method")]
    assert f"{few['n_collapsed']:.0f} failed and {few['n_healthy']:.0f} healthy runs are left" in TEXT
    assert pd.read_csv(TABLES / "definitions.csv")["definition"].nunique() == 5
    assert pd.read_csv(TABLES / "nulls.csv").query("signal == 'ess'")["null"].nunique() == 5
    assert {"auprc", "prevalence"} <= set(pd.read_csv(TABLES / "auroc.csv"))


def test_no_lead_over_the_rivals_named() -> None:
    gain = pd.read_csv(TABLES / "increment.csv").query("lead == 20").set_index("comparison")["verdict"]
    named = [f"ESS alone against {name}" for name in ("kl", "reward_low", "the configuration")]
    assert set(gain[[*named, "everything + ESS against everything"]]) == {"cannot be told apart"}
