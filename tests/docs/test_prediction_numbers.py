"""Every number in the summary of the prediction study is one of its tables'."""

import numpy as np
import pandas as pd
import pytest
from page_prose import STUDIES, ends, number, prose

STUDY = STUDIES / "prediction"
TEXT = prose(STUDY / "README.md")
FAILURES = ("collapse", "collapse with rebound", "nan")
NAMES = {"low training reward": "reward_low", "token ESS": "token_ess", "reward drop": "reward_drop"}
NAMES |= {"ESS": "ess", "KL": "kl"}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(STUDY / "tables" / f"{name}.csv")


def area(row: pd.Series) -> str:
    return f"{number(row['value'])} {ends(row['low'], row['high'])}"


AUROC = read("auroc").set_index(["signal", "lead"])
GAIN = read("increment").set_index(["lead", "comparison"])
AGAINST = {
    name: f"ESS alone against {signal}"
    for name, signal in {"reward": "reward_low", "kl": "kl", "norm": "grad_norm", "z": "grad_norm_z"}.items()
}


@pytest.mark.parametrize(
    ("sentence", "rows"),
    [
        (
            "AUROC {} at 20 updates ahead, {} at 50, {} at 100. At 20,",
            [AUROC.loc[("ess", lead)] for lead in (20, 50, 100)],
        ),
        (
            "A low training reward has AUROC {} at 20 updates ahead, {} at 50 and {} at 100.",
            [AUROC.loc[("reward_low", lead)] for lead in (20, 50, 100)],
        ),
        (
            "ESS minus that: {} at 20, {} at 50, {} at 100:",
            [GAIN.loc[(lead, AGAINST["reward"])] for lead in (20, 50, 100)],
        ),
        ("0.95 against 0.94, difference {};", [GAIN.loc[(20, AGAINST["kl"])]]),
        ("by the estimate: {} more than the norm", [GAIN.loc[(20, AGAINST["norm"])]]),
        ("more than its z-score by {}.", [GAIN.loc[(20, AGAINST["z"])]]),
        ("ESS minus that: {}. Within one", [GAIN.loc[(20, "ESS alone against the configuration")]]),
        ("ESS moves its AUROC by {}.", [GAIN.loc[(20, "everything + ESS against everything")]]),
    ],
)
def test_areas_and_their_differences(sentence: str, rows: list[pd.Series]) -> None:
    assert sentence.format(*map(area, rows)) in TEXT


def test_single_areas() -> None:
    at_20 = AUROC.xs(20, level="lead")["value"]
    assert f"KL has {at_20['kl']:.2f}, and token ESS, {at_20['token_ess']:.2f}, a higher estimate" in TEXT
    said = "Low entropy ({:.2f}) and the cosine of consecutive gradients ({:.2f}) are below one half"
    assert said.format(*at_20[["entropy_low", "grad_cosine"]]) in TEXT
    assert f"high entropy is at {at_20['entropy_high']:.2f}" in TEXT
    configuration = GAIN.loc[(20, "ESS alone against the configuration"), "without"]
    assert f"without looking at the run, scores {configuration:.2f};" in TEXT
    null = read("nulls").set_index(["signal", "null"]).loc[("ess", "permuted within configuration")]
    assert (
        f"stays {number(null['null_mean'])} {ends(null['null_low'], null['null_high'])} (p = {null['p']:.2f})" in TEXT
    )
    few = read("matching").set_index(["signal", "match"]).loc[("ess", "+rate+method")]
    assert f"({few['n_collapsed']:.0f} failed, {few['n_healthy']:.0f} healthy)" in TEXT


def test_who_failed() -> None:
    runs = read("runs")
    failed = (runs["collapsed"] + runs["nan"]).groupby(runs["method"]).sum()
    by_method = ", ".join(f"{failed[name]} of {name}" for name in ("reinforce", "tis", "clip"))
    healthy = runs["healthy"].sum()
    assert f"{runs['started'].sum()} runs, {failed.sum()} failed ({by_method}), {healthy} healthy" in TEXT
    assert f"{failed['reinforce'] / failed.sum():.0%} of the failures are of plain reinforce" in TEXT
    near = runs.loc[runs["staleness"] <= 1, "healthy"].sum()
    assert f"The {healthy} healthy runs include {near} at lag 0 and 1" in TEXT
    cases = read("placements")
    assert set(cases["event"]) <= set(FAILURES)
    alike = cases.groupby(["task", "method", "staleness", "lr"]).ngroups
    reinforce, rebound = (cases["method"] == "reinforce").sum(), (cases["event"] == FAILURES[1]).sum()
    found = AUROC.loc[("ess", 20)]
    assert f"At 20, {found['n_collapsed']:.0f} failed and {found['n_healthy']:.0f} healthy runs" in TEXT
    assert f"the {len(cases)} are of {alike} configurations, {reinforce} of them plain reinforce" in TEXT
    assert f"Of the {len(cases)}, {rebound} are `collapse with rebound`" in TEXT
    assert f"The other {failed.sum() - len(cases)} of the {failed.sum()} fall too early" in TEXT
    highest = np.exp(-cases["score"].min())
    assert f"none of {len(cases)} failed runs had an ESS ratio above 0.9; the highest was {highest:.2f}" in TEXT


@pytest.mark.parametrize("name", NAMES)
def test_alarms(name: str) -> None:
    row = read("episodes").set_index("signal").loc[NAMES[name]]
    rate, recall = f"{row['false_per_1000']:.1f}", f"{row['recall']:.2f}"
    if name == "ESS":
        low, high = row["false_per_1000_low"], row["false_per_1000_high"]
        recall += f" {ends(row['recall_low'], row['recall_high'])}, median lead {row['lead_median']:.0f}"
        rate = f"{number(row['false_per_1000'])} {ends(low, high)}"
    false = read("false_alarms").query("signal == @NAMES[@name] and onset == inf")
    runs = read("runs")
    lagged = runs.loc[runs["staleness"] > 1, "healthy"].sum()
    assert f"of the {lagged} with lag |" in TEXT
    assert len(false) == round(row["healthy_alarmed"] * row["n_healthy"])
    share = (false["staleness"] > 1).sum() / lagged
    assert f"| {name} | {recall} | {rate} | {row['healthy_alarmed']:.0%} | {share:.0%} |" in TEXT
    if name in ("ESS", "KL"):
        assert (false["staleness"] > 1).all(), "never fired without lag"


def test_alarms_that_come_too_late() -> None:
    row = read("episodes").set_index("signal").loc["ess"]
    assert f"For {row['late']} of the {row['n_collapsed']} failures the ESS alarm comes too late" in TEXT
    random = f"{number(row['placebo_recall'])} {ends(row['placebo_low'], row['placebo_high'])}"
    assert f"| random alarms at ESS's rate | {random} |" in TEXT
    onsets = pd.read_csv(STUDIES / "protocol" / "tables-three-rates" / "scores.csv").query("failed")["onset"]
    assert f"half of all failures are found by update {onsets.median():.0f}" in TEXT


def test_other_splits() -> None:
    found = read("generalisation").set_index(["signal", "split"])
    recall = found.loc["ess", "recall"]
    said = "ESS thresholds recall {:.2f} on held-out seeds, {:.2f} on held-out methods, {:.2f} on held-out tasks"
    assert said.format(*recall[["seed", "method", "task"]]) in TEXT
    false = found.loc["ess", "false_per_1000"]
    assert f"(there with {false['task']:.1f} false alarms per 1,000 instead of {false['seed']:.1f})" in TEXT
    model = found.loc["model of everything"]
    interval = ends(*model.loc["method", ["auroc_low", "auroc_high"]])
    seed, method, task = model["auroc"][["seed", "method", "task"]]
    assert f"AUROC {seed:.2f}, {method:.2f} {interval} and {task:.2f}." in TEXT
