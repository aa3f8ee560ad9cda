"""Every number of the page on acting after an alarm is recomputed from its forks."""

import numpy as np
import pandas as pd
import pytest
from page_prose import STUDIES, ends, mean, number, prose, table

from vcpo_bench.analysis.intervals import t_interval

PAGE = STUDIES / "prediction" / "rescue.md"
TEXT = prose(PAGE)
FORKS = pd.read_csv(STUDIES / "prediction" / "rescue.csv")
FINAL = FORKS.set_index(["method", "when", "task", "seed"])["final"].sort_index()
AT = FORKS[FORKS["method"] == "vcpo"].set_index(["when", "task", "seed"])[["at", "before"]].sort_index()
START = pd.read_csv(STUDIES / "protocol" / "tables" / "scores.csv").query("lr == 3e-4 and staleness == 16")
START = START.set_index(["method", "task", "seed"])["score"].sort_index()
SWITCHED = FORKS[FORKS["method"] != "reinforce"]


def test_how_the_forks_ended() -> None:
    assert f"{len(FORKS)} forks, all `completed`" in TEXT
    assert set(FORKS["status"]) == {"completed"}
    assert f"Every one of the {len(SWITCHED)} switched forks" in TEXT
    lowest = SWITCHED.groupby("task")["final"].min()
    assert f"(lowest end {lowest['chain']:.2f} on `chain`, {lowest['walk']:.2f} on `walk`)" in TEXT
    failed = SWITCHED[SWITCHED["event"] == "collapse with rebound"]
    assert set(failed["when"]) == {"found"}
    by, tasks = failed["method"].value_counts(), failed["task"].value_counts()
    assert f"{len(failed)} of them are failures all the same" in TEXT
    assert (
        f"({by['vcpo']} of vcpo, {by['vespo']} of vespo; {tasks['walk']} on `walk`, {tasks['chain']} on `chain`)"
        in TEXT
    )
    events = SWITCHED["event"].value_counts()
    rest = len(SWITCHED) - len(failed)
    assert f"Of the other {rest}, {events['healthy']} are `healthy` and {events['transient dip']} a" in TEXT
    assert events[["healthy", "transient dip"]].sum() == rest
    other = prose(STUDIES / "prediction" / "README.md")
    assert f"All {len(SWITCHED)} end at {SWITCHED['final'].min():.2f} or more; {len(failed)} of them" in other


def test_the_table() -> None:
    shown = table(PAGE, ["", "chain", "walk"])
    for place, task in enumerate(("chain", "walk")):
        for when, name in (("alarm", "alarm"), ("found", "loss")):
            at = AT.loc[(when, task)]["at"]
            assert shown[f"{name} at update"][place] == f"{at.min()} to {at.max()}"
            for method in ("vcpo", "vespo"):
                row = mean(FINAL[method, when, task])
                assert shown[f"{method} from the {name} on"][place] == row
        for method in ("vcpo", "vespo"):
            assert shown[f"{method} from the start"][place] == mean(START[method, task])
        before = [mean(AT.loc[(when, task)]["before"]) for when in ("alarm", "found")]
        assert shown["reward at the alarm, at the loss"][place] == ", ".join(before)
        going_on = FINAL["reinforce", "alarm", task]
        assert shown["go on with reinforce"][place] == (mean(going_on) if task == "walk" else number(going_on.mean()))


def against_start(method: str, when: str, task: str) -> np.ndarray:
    """Reward from the start minus reward with a switch, by seed: [6]."""
    return (START[method, task] - FINAL[method, when, task]).to_numpy(float)


@pytest.mark.parametrize(
    ("sentence", "values"),
    [
        (
            "switching at the alarm costs `vcpo` {} on `chain` and {} on `walk`",
            [against_start("vcpo", "alarm", task) for task in ("chain", "walk")],
        ),
        (
            "`vespo` loses {} and gains {}.",
            [against_start("vespo", "alarm", "chain"), -against_start("vespo", "alarm", "walk")],
        ),
        (
            "`vcpo` still comes within {} and {} of its run from the start",
            [against_start("vcpo", "found", task) for task in ("chain", "walk")],
        ),
        (
            "leave it undecided: {}, `vespo` {}.",
            [FINAL[name, "alarm", "walk"] - FINAL[name, "found", "walk"] for name in ("vcpo", "vespo")],
        ),
    ],
)
def test_what_a_switch_costs(sentence: str, values: list[np.ndarray]) -> None:
    assert sentence.format(*map(mean, values)) in TEXT


def test_what_waiting_costs() -> None:
    wait = AT["at"]["found"] - AT["at"]["alarm"]
    chain = FINAL["vcpo", "alarm", "chain"] - FINAL["vcpo", "found", "chain"]
    said = f"Waiting from the alarm to the loss, {wait.min()} to {wait.max()} updates, costs `vcpo`"
    assert f"{said} {number(chain.mean(), 3)} {ends(*t_interval(chain), 3)} on `chain`" in TEXT
