"""The page of fourteen points is whole, its links lead somewhere, and its numbers are those of the tables."""

import re

import pandas as pd
import pytest
from page_prose import STUDIES, prose, table

PAGE = STUDIES / "points.md"
TEXT = prose(PAGE)
TABLES = STUDIES / "prediction" / "tables"
POINTS = table(PAGE, ["", "point", "prediction", "configurations", "boundary", "comparisons"])


def test_every_point_has_a_verdict_and_its_reason() -> None:
    assert list(POINTS) == [str(number) for number in range(1, 15)]
    first, own = TEXT.split("## Boundary, point by point")
    first, wide = first.split("## Configurations, point by point")
    own = own.split("## Comparisons")[0]
    for number, (_, verdict, configurations, boundary, comparisons) in POINTS.items():
        assert verdict in ("met", "half", "no")
        assert f"{number}. **{configurations.title()}" in wide
        assert boundary in ("met", "half", "no", "-")
        assert f"{number}. **{boundary.title()}" in own
        assert comparisons in ("met", "half", "no", "-")
        assert f"{number}. **{verdict.title()}" in first
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


def test_which_studies_ship_their_updates() -> None:
    said = TEXT.split("Per-update tables ship with")[1].split("* **")[0]
    ship, lack = (set(re.findall(r"\]\(([\w-]+)/README", part)) for part in said.split("They do not with"))
    studies = {page.parent.name for page in STUDIES.glob("*/README.md")}
    without_runs = {"configurations", "confirmation", "leaderboard", "realized-lags"}
    assert ship | lack == studies - without_runs
    archives = {name for name in studies if any((STUDIES / name / "updates").glob("**/*.zip"))}
    assert (STUDIES / "tinker" / "steps.csv.gz").exists()
    assert list((STUDIES / "trl").glob("curves-*.csv.gz"))
    assert ship == archives | {"scorecard", "tinker", "trl"}


def test_no_lead_over_the_rivals_named() -> None:
    gain = pd.read_csv(TABLES / "increment.csv").query("lead == 20").set_index("comparison")["verdict"]
    named = [f"ESS alone against {name}" for name in ("kl", "reward_low", "the configuration")]
    assert set(gain[[*named, "everything + ESS against everything"]]) == {"cannot be told apart"}


def test_the_commands_of_the_boundary_study_are_those_of_its_page() -> None:
    own = TEXT.split("## Boundary, point by point")[1].split("## Comparisons")[0]
    assert "[Three commands](boundary/README.md#reproduce) make all tables again" in own
    named = re.findall(r"`(tools/[\w/]+\.py)(?: --end)?`", own.split("14. **")[1])
    assert named == [
        f"tools/{name}.py" for name in ("run_archives/unpack", "boundary_study/supplement", "boundary_study/page")
    ]
    page = (STUDIES / "boundary" / "README.md").read_text().split("## Reproduce")[1]
    for name in named:
        assert f"python {name} " in page
        assert (STUDIES.parents[1] / name).exists()
    assert "page.py results/boundary --end" in page


def test_what_the_boundary_study_does_not_correct() -> None:
    registered = prose(STUDIES / "boundary" / "registration.md")
    for said in (
        "The other leads are reported without bars.",
        "(TOST at 5%, uncorrected)",
        "not corrected for their number",
    ):
        assert said in registered
    assert POINTS["10"][2] == "half"


def test_numbers_of_the_boundary_study() -> None:
    folder = STUDIES / "boundary"
    assert f"has all {len(pd.read_csv(folder / 'runs.csv'))} runs" in TEXT
    ess = pd.read_csv(folder / "signals.csv").set_index("signal").loc["ess"]
    assert f"{ess['failed']:.0f} failures against {ess['survivors']:.0f} survivors, in seven groups" in TEXT
    assert ess["groups"] == 7
    assert f"Too few to tell {ess['auroc']:.2f} from 0.5 or from 0.6" in TEXT
    highest = pd.read_csv(folder / "signals.csv")["high"].max()
    assert f"10 updates ahead no interval goes above {highest:.2f}, those of single tasks aside" in TEXT
    assert 0.725 < highest <= 0.73
    assert (pd.read_csv(folder / "tasks.csv")["high"] > highest).any(), "single tasks go above it"
    assert ess["low"] < 0.5 < 0.6 < ess["high"]
    each = pd.read_csv(folder / "places.csv")["ess_auroc"]
    assert f"ESS has {each.min():.2f} to {each.max():.2f} in single configurations" in TEXT
    definitions = pd.read_csv(folder / "tables" / "definitions.csv").query("signal == 'ess'")
    assert (len(definitions), (definitions["verdict"] == "too few").sum()) == (5, 3)
    assert pd.read_csv(folder / "tables" / "nulls.csv").query("signal == 'ess'")["null"].nunique() == 5
    assert (pd.read_csv(folder / "places.csv")["staleness"] != 16).sum() == 1
    leads = pd.read_csv(folder / "leads.csv").query("signal == 'ess'").set_index("lead")["auroc"]
    assert leads.notna().to_dict() == {5: True, 10: True, 20: True, 40: False}


def test_what_the_study_of_configurations_rests_on() -> None:
    own = TEXT.split("## Configurations, point by point")[1].split("## Boundary, point by point")[0]
    folder = STUDIES / "configurations"
    row = pd.read_csv(folder / "rivals.csv").query("study == 'phase' and task == 'all' and rival == 'lr'")
    primary = row[row["controls"] == "and method"].iloc[0]
    width = primary["high"] - primary["low"]
    said = f"{primary['failed']} failed runs of {primary['units']} units: the primary interval is {width:.2f} wide."
    assert said in own
    assert primary["verdict"] == "less"
    assert pd.read_csv(folder / "tables" / "definitions.csv")["definition"].nunique() == 5
    assert pd.read_csv(folder / "tables" / "nulls.csv")["null"].nunique() == 5
    assert set(pd.read_csv(folder / "tables" / "misses.csv")["signal"]) == {"ess"}
    held_out = pd.read_csv(folder / "tables" / "generalization.csv")["split"]
    assert set(held_out) == {"seed", "method", "staleness", "task"}


def test_where_the_last_points_are_met() -> None:
    own = TEXT.split("## Where each point is met")[1].split("## Prediction, point by point")[0]
    power = pd.read_csv(STUDIES / "confirmation" / "power.csv").set_index("statement")
    least = power[["power_first", "power_first_without_0"]].min(axis=1)
    assert f"at least 0.99 for {('six', 'seven', 'eight')[int((least >= 0.99).sum()) - 6]} of the ten" in own
    assert "the other three are named" in own
    answers = pd.read_csv(STUDIES / "confirmation" / "answers.csv")
    assert len(answers) == 10
    assert answers["statement"].iloc[0] == "blind", "the primary statement"
    assert [f"Point {number}:" in own for number in range(10, 14)] == [True] * 4
