"""What the page of the scorecard says beside its verdicts is recomputed from shipped tables, and can be otherwise."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_prose import prose
from scorecard import before_lag
from scorecard.places import DOCS, FOLDER, PAGE
from scorecard.tables import EVALS, RUNS, Tables
from scorecard_tables import FACTS, Story, tables

SHIPPED = Tables.read(FOLDER, DOCS)
TEXT = prose(PAGE)
ONSETS = pd.read_csv(FOLDER / RUNS)
EVALUATED = pd.read_csv(FOLDER / EVALS)


def section(number: int) -> str:
    """The text of a fact's section."""
    return TEXT.split(f"### {number}. ")[1].split(" ### ")[0].split(" ## ")[0]


def test_onsets_follow_from_the_shipped_evaluations() -> None:
    assert SHIPPED.with_onsets().to_csv(index=False) == (FOLDER / RUNS).read_text(), "run: tools/scorecard/page.py"
    apart = EVALUATED.sort_values(["run", "step"]).groupby("run")["step"].diff().dropna()
    assert set(apart) == {before_lag.EVERY}, "lag_tables and the notes take one interval for all runs"
    assert "are evaluated every 10 updates" in TEXT
    assert before_lag.EVERY == 10


def test_the_lag_asked_for_is_reached_at_that_update() -> None:
    fifo = SHIPPED.runs[SHIPPED.runs["regime"].str.startswith("fifo")]
    seen = SHIPPED.updates.merge(fifo[["run", "staleness"]], on="run")
    assert (seen["lag_max"] == seen[["step", "staleness"]].min(axis=1)).all()
    assert len(seen) > 10_000
    assert set(ONSETS.loc[ONSETS["onset"].notna(), "regime"]) == {"fifo"}, "so it holds where runs failed"


def test_a_failure_is_early_by_its_onset_and_perhaps_by_the_evaluation_before() -> None:
    runs = pd.DataFrame({"onset": [10.0, 16, 20, 25, 26, 30, np.nan], "staleness": 16})
    found = before_lag.when(runs.assign(failed=runs["onset"].notna()))
    assert found.tolist()[:6] == ["early", "perhaps", "perhaps", "perhaps", "later", "later"]
    assert pd.isna(found.iloc[6])


def told(fall: Any) -> str:
    """The note of fact 1 in a world in which the lagged runs of `tis` on `walk` fall so."""
    lagged = lambda c: c.method == "tis" and c.task == "walk"  # noqa: E731
    return str(FACTS[1].note(tables(FACTS[1].blocks, lambda c: Story(fall=fall(c) if lagged(c) else None))))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("falls", "said"),
    [
        ((10,), "8 of the 8 failures of `tis` were found before lag 16 was reached."),
        ((20,), "8 of the 8 failures of `tis` were found at update 20 and may have begun before lag 16 was reached."),
        ((30,), "none of the 8 failures of `tis` began before lag 16 was reached."),
        (
            (10, 20, 30, 40),
            "2 of the 8 failures of `tis` were found before lag 16 was reached, and 2 at update 20 may have begun "
            "before it.",
        ),
    ],
)
def test_the_sentence_goes_every_way(falls: tuple[int, ...], said: str) -> None:
    assert told(lambda c: falls[c.seed % len(falls)]) == f"* On `walk` {said}\n"


def test_no_failure_no_sentence() -> None:
    assert told(lambda c: None) == ""


def test_which_failures_of_fact_1_came_before_their_lag() -> None:
    for task, rate in (("walk", 8e-4), ("chain", 1.6e-3)):
        own = ONSETS[(ONSETS["task"] == task) & np.isclose(ONSETS["lr"], rate) & (ONSETS["staleness"] == 16)]
        for method in ("reinforce", "tis"):
            onsets = own.loc[own["method"] == method, "onset"].dropna()
            early, perhaps = (onsets < 16).sum(), ((onsets >= 16) & (onsets - 10 < 16)).sum()
            of = f"of the {len(onsets)} failures of `{method}`"
            said = (
                f"{early} {of} were found before" if early else f"{perhaps} {of} were found at update 20 and may have"
            )
            assert f"On `{task}` {said if early or perhaps else f'none {of} began'}" in section(1)
        failed = own["onset"].dropna()
        early, perhaps = (failed < 16).sum(), ((failed >= 16) & (failed - 10 < 16)).sum()
        counts = f"{early} of the {len(failed)} failures were found before lag 16 was reached, and {perhaps} more may"
        assert f"On `{task}` {counts}" in section(4), "fact 4 has all of these runs"
    assert "On `chain` 2 of the 7 failures of `vcpo(ess=off)` were found before" in section(3)


def test_which_lags_of_the_scorecard_are_of_stale_mini_batches() -> None:
    said = prose(DOCS / "studies" / "realized-lags" / "README.md")
    lags = sorted(ONSETS.loc[ONSETS["regime"] == "minibatch", "staleness"].unique())
    assert f"Its lags {lags[0]}, {lags[1]} and {lags[2]} are of stale mini-batches" in said
    assert not set(lags) & set(ONSETS.loc[ONSETS["regime"] != "minibatch", "staleness"])
