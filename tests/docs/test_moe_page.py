"""The sentences of the page on router mismatch are those of its tables."""

import re

import pandas as pd
import pytest
from page_prose import STUDIES, ends, number, prose

from vcpo_bench.methods import parse_method

STUDY = STUDIES / "moe"
TEXT = prose(STUDY / "README.md")


def read(name: str, *index: str) -> pd.DataFrame:
    """A table of the study by these columns."""
    return pd.read_csv(STUDY / f"{name}.csv").set_index(list(index))


def span(values: "pd.Series[float]", digits: int = 3) -> str:
    """The least and the largest of some estimates."""
    return f"{number(values.min(), digits)} to {number(values.max(), digits)}"


def told(rows: pd.DataFrame) -> list[int]:
    """The lags at which an interval is without 0."""
    return [int(lag) for lag, row in rows.iterrows() if row["low"] > 0 or row["high"] < 0]


def test_the_size_of_the_study() -> None:
    runs = pd.read_csv(STUDY / "runs.csv")
    own = runs[~runs["arm"].str.startswith("shift-")]
    assert "on `chain`, lags 0, 4 and 16, five methods, five seeds" in TEXT
    assert set(runs["task"]) == {"chain"}
    assert set(own["staleness"]) == {0, 4, 16}
    assert (own["method"].nunique(), own["seed"].nunique()) == (5, 5)
    assert set(runs["method"]) - set(own["method"]) == {"rspo", "gmpo"}
    moe = runs[~runs["arm"].str.startswith("dense-")]
    assert ("no run of the mixture of experts collapsed" in TEXT) == (not moe["failed"].any())


def test_the_part_of_the_engine() -> None:
    engine = read("engine", "replay", "staleness")
    r3 = engine.loc[("r3", 0)]
    assert f"At lag 0 R3 leaves {number(r3['value'])} {ends(r3['low'], r3['high'])} of the KL" in TEXT
    assert r3["verdict"] == "holds"
    assert r3["high"] < 0.5
    assert engine.loc[("r2", 0), ["value", "low", "high"]].eq(1).all(), "R2 changes nothing at lag 0"


def test_the_part_of_lag() -> None:
    lag = read("lag", "what", "staleness")
    routers = lag.loc["routers changed by lag, ratio"]
    assert {number(value) for value in routers["value"]} == {"1.01"}
    assert "drift as far with replay as without it (1.01 times at both lags)" in TEXT
    assert set(routers["verdict"]) == {"left"}
    kl = lag.loc["KL, ratio"]["value"]
    assert f"{number(kl[4])} of it is left at lag 4 and {number(kl[16])} at lag 16." in TEXT
    reward = lag.loc["final reward, difference"]
    assert reward[["low", "high"]].abs().max(axis=None) < 0.01
    assert "The final reward changes by less than 0.01 (both intervals)." in TEXT


def test_one_replay_against_the_other() -> None:
    replays = read("replays", "what", "staleness")
    kl, reward = replays.loc["KL, ratio"]["value"], replays.loc["final reward, difference"]
    said = "R3 leaves {} of R2's KL at lag 0, {} at lag 4 and {} at lag 16"
    assert said.format(*(number(kl[lag]) for lag in (0, 4, 16))) in TEXT
    assert kl.is_monotonic_increasing, "largest without lag"
    assert f"Its reward is {span(reward['value'])} higher by the estimates" in TEXT
    at_0 = reward.loc[0]
    assert f"at lag 0 alone ({number(at_0['value'], 3)} {ends(at_0['low'], at_0['high'], 3)})" in TEXT
    assert told(reward) == [0]


@pytest.mark.parametrize(
    ("policy", "words", "lags"), [("moe", "in the mixture of experts", [0]), ("tiny", "in the dense one", [0, 4])]
)
def test_what_noise_costs(policy: str, words: str, lags: list[int]) -> None:
    own = read("noise", "policy", "staleness").loc[policy]
    assert f"{span(-own['value'])} {words}" in TEXT
    assert told(own) == lags
    assert "It can be told from 0 at lag 0 alone in the one, at lags 0 and 4 in the other." in TEXT


def test_the_sum_of_the_parts() -> None:
    late = read("parts", "staleness").loc[16]
    assert f"sum to {number(late['sum_of_parts'])} of the decisions" in TEXT
    assert f"but only {number(late['routers_changed'])} differ" in TEXT


def test_what_the_factor_of_rspo_changes() -> None:
    shift = pd.read_csv(STUDY / "shift.csv").query("what == 'final reward, difference'")
    assert set(shift["verdict"]) == {"equivalent"}
    assert f"all {len(shift)} differences between `rspo` and `gmpo` are equivalent within 0.05" in TEXT


def test_what_the_page_says_of_the_design() -> None:
    folder = STUDIES.parents[1] / "tools" / "moe_study"
    source = (folder / "design.py").read_text() + (folder / "tables.py").read_text()
    steps, since = (re.findall(rf"^{name} = (\d+)$", source, flags=re.MULTILINE)[0] for name in ("STEPS", "SINCE"))
    assert f"{steps} updates on `chain`" in TEXT
    assert re.findall(r"(\d+) updates (?:on|are|at)", TEXT) == [steps] * 3
    assert f"are means over the updates from {since} on" in TEXT
    (alike,) = re.findall(r"^ALIKE = \((.*)\)$", source, flags=re.MULTILINE)
    assert f"*Left*: the ratio is within [{alike}] at 90%" in TEXT
    (margin,) = re.findall(r"^MARGIN = (.*)$", source, flags=re.MULTILINE)
    assert f"difference in reward is within {margin} at 90%" in TEXT
    assert "gspo(high=0.04,low=0.03)" in source
    assert "`gspo` has bounds of 0.03 and 0.04 here, a hundred times the published ones." in TEXT
    assert parse_method("gspo(low=3e-4,high=4e-4)").canonical == "gspo"
