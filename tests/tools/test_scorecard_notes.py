"""What the page of the scorecard says beside its verdicts is recomputed from shipped tables, and can be otherwise."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lag_tables.lags import when
from page_prose import prose
from scorecard import before_lag
from scorecard.facts import f02_large_lag, f08_caps, f09_batch_size
from scorecard.non_inferiority import non_inferiority, profile
from scorecard.places import DOCS, FOLDER, PAGE, PROFILE, REGISTRATION
from scorecard.recoveries import recoveries
from scorecard.tables import EVALS, RUNS, Tables
from scorecard_tables import FACTS, Story, tables

from vcpo_bench.analysis.comparison.speedup import NOT_INFERIOR, SHARES
from vcpo_bench.bench.cells.settings import CellSettings

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
    found = when(runs, before_lag.EVERY)
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


def test_how_often_failed_runs_recover_elsewhere() -> None:
    studies, text = DOCS / "studies", section(6)
    fates = pd.read_csv(studies / "boundary" / "fates.csv").set_index(["counts_as", "event"])["runs"]["failed"]
    acting = pd.read_csv(studies / "acting" / "runs.csv").query("act == 'nothing' and group == 'risky' and failed")
    up = (acting["event"] == "collapse with rebound").sum()
    assert f"{fates['collapse with rebound']} of {fates.sum()} in its configurations that count," in text
    assert f"and {up} of {len(acting)} runs of `reinforce` that were left alone in the [acting study]" in text
    assert set(acting["method"]) == {"reinforce"}
    main = pd.read_csv(studies / "boundary" / "runs.csv").query("stage == 'main' and failed")
    every = (main["event"] == "collapse with rebound").sum()
    assert f"many failed runs recover by update 300: {every} of {len(main)} in the [boundary study]" in text
    phase = pd.read_csv(studies / "phase" / "runs.csv").query("failed and staleness > 0")["event"]
    back = (phase == "collapse with rebound").sum()
    assert f"above 0 of the phase study {back} of {len(phase)} do ({back / len(phase):.0%})." in text
    boundary = pd.read_csv(studies / "boundary" / "runs.csv").query("stage == 'main' and method == 'tis' and failed")
    for (task, lag), own in boundary.groupby(["task", "staleness"]):
        back = (own["event"] == "collapse with rebound").sum()
        assert f"{back} of {len(own)} on `{task}` at lag {lag} and" in text
    table = f08_caps.ends_by_weight(SHIPPED.outcomes(f08_caps.CAPS)).loc["tis"]
    assert f"in the runs of fact 8 {table['rebounded']} of {table['failed'][0]} on `walk` at 0.0006." in text


def test_how_far_fact_6_lies_above_what_survives() -> None:
    levels = pd.read_csv(DOCS / "studies" / "phase" / "levels.csv").query("staleness == 16")
    for task, rate in (("walk", 8e-4), ("chain", 1.6e-3)):
        for method in ("reinforce", "tis"):
            own = levels[(levels["task"] == task) & (levels["method"] == method)]["largest_rate"].item()
            assert f"{rate / own:.1f} times that of `{method}` on `{task}`" in section(6)
            assert rate > own


def test_without_the_tables_of_other_studies_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert recoveries(Tables.empty(tmp_path)) == ""
    assert recoveries(Tables.empty(DOCS)).rstrip().endswith("4 of 6 on `walk-eos` at lag 16 and 0.00078.")


def test_where_runs_end_by_cap() -> None:
    own = ONSETS.query("task == 'walk' and lr == 6e-4 and staleness == 16 and prompts == 16 and steps == 300")
    last = EVALUATED.sort_values("step").groupby("run").tail(3).groupby("run")["sampled_reward"].mean()
    ends = own.assign(final=own["run"].map(last), life=own["onset"].fillna(300).clip(upper=300)).groupby("method")
    final, life = ends["final"].mean(), ends["life"].mean()
    caps = ["tis(cap=1)", "tis(cap=2)", "tis(cap=4)", "tis", "tis(cap=32)", "tis(cap=1000000000)"]
    lives, finals = ([f"{values[name]:.{digits}f}" for name in caps] for values, digits in ((life, 0), (final, 2)))
    text = section(8)
    assert f"runs survive {', '.join(lives[:-1])} and {lives[-1]} updates, and end at" in text
    assert f"end at {', '.join(finals[:-1])} and {finals[-1]}; the start policy has 0.32" in text
    assert life["tis"] < life["tis(cap=32)"], "not monotone"
    assert (np.diff(final[caps]) < 0).all(), "a smaller cap ends higher throughout"
    assert f"| `token-tis` | 0 of 8 | 0 | 300 | {final['token-tis']:.2f} |" in text


def test_caps_in_order_are_said_to_be_so() -> None:
    falls = {name: 30.0 * place for place, name in enumerate(reversed(f08_caps.BY_CAP.values()), start=2)}
    noted = f08_caps.note(tables(FACTS[8].blocks, lambda c: Story(fall=falls.get(c.method))))
    assert "runs survive 210, 180, 150, 120, 90 and 60 updates, and end at" in noted
    assert "A cap of 8 minus one of 32: 30 [30, 30] updates survived." in noted


def test_how_often_token_tis_fails() -> None:
    at = ONSETS.query("task == 'walk' and lr == 6e-4 and steps == 300 and method == 'token-tis'").groupby("prompts")
    failed, runs = at["onset"].count(), at.size()
    counts = ", ".join(map(str, failed))
    assert f"8, 16, 32 prompts: `token-tis` {counts}, in all {failed.sum()} of {runs.sum()} runs" in section(9)


def test_the_profile_is_current_and_its_rows_follow_by_hand() -> None:
    made = profile(SHIPPED)
    assert made.to_csv(index=False, float_format="%.6g") == PROFILE.read_text(), "run: tools/scorecard/page.py"
    assert sorted(set(made["share"])) == list(SHARES)
    runs = ONSETS.query("task == 'walk' and method == 'vcpo' and lr == 4e-4 and steps == 500")
    wide = EVALUATED[EVALUATED["run"].isin(runs["run"])].pivot(index="step", columns="run", values="sampled_reward")
    lags = runs.set_index("run")["staleness"][wide.columns]
    start, plateau = wide.loc[0].mean(), wide.tail(3).mean()[lags == 0].mean()
    there = (wide + wide.shift()) / 2 >= start + 0.5 * (plateau - start)
    at = there.idxmax().where(there.any())
    assert (at.dropna() > lags[at.notna()]).all()
    assert "Every arrival of a run with a lag comes after its lag was reached." in TEXT
    by_lag = made[made["share"] == 0.5].set_index("lag_asked")
    for lag, row in by_lag.iterrows():
        own = at[lags == lag]
        assert row["reached"] == f"{own.notna().sum()} of 8"
        assert row["updates"] == own.fillna(500).mean()
        assert row["samples"] == 128 * row["updates"]
    ratios = by_lag.loc[by_lag["sooner"].notna(), "sooner"]
    assert ratios.to_numpy() == pytest.approx(
        [by_lag.loc[0, "updates"] / by_lag.loc[lag, "updates"] for lag in ratios.index]
    )
    assert (by_lag["low"].dropna() <= ratios).all()
    assert (by_lag["high"].dropna() >= ratios).all()


def test_a_first_arrival_comes_after_the_lag_at_the_smallest_share_too() -> None:
    target = float(SHIPPED.outcomes(f02_large_lag.SWEEP, until=500).query("staleness == 0")["final"].mean())
    runs = SHIPPED.outcomes(f02_large_lag.SWEEP, until=500).query("staleness > 0")
    start = float(np.mean([SHIPPED.curve(run)["sampled_reward"].iloc[0] for run in runs["run"]]))
    for run, lag in zip(runs["run"], runs["staleness"], strict=True):
        assert f02_large_lag.arrival(SHIPPED.curve(run), start + SHARES[0] * (target - start)) > lag


def test_a_run_that_is_twice_as_slow_has_half_the_ratio() -> None:
    world = tables([f02_large_lag.SWEEP], lambda c: Story(tau=20.0 if c.staleness == 0 else 40.0))
    made = profile(world).set_index(["share", "lag_asked"])
    assert made.loc[(0.5, 128), "sooner"] == pytest.approx(0.5, abs=0.15)
    assert made.loc[(0.5, 128), "low"] == made.loc[(0.5, 128), "high"], "all seeds alike"
    never = tables([f02_large_lag.SWEEP], lambda c: Story(top=0.9 if c.staleness == 0 else 0.3))
    none = profile(never).set_index(["share", "lag_asked"]).loc[(0.25, 16)]
    assert (none["reached"], none["updates"]) == ("0 of 8", 500)
    assert none[["sooner", "low", "high"]].isna().all()
    assert profile(Tables.empty(DOCS)).empty


def test_the_margins_of_compare_are_shares_of_the_gain_and_those_here_are_rewards() -> None:
    assert "`non_inferiority`, at 90% and 95% of the gain" in TEXT
    assert NOT_INFERIOR == (0.9, 0.95)
    assert "its tables `speedup`, at these shares" in TEXT
    table = non_inferiority(SHIPPED)
    lagged = table[table["lag_asked"] > 0]["reached"]
    assert ("No run with a lag arrives" in TEXT) == (set(lagged) == {"0 of 8"})


def test_what_was_known_beforehand_is_what_the_registration_says() -> None:
    registered = prose(REGISTRATION)
    assert "facts 10 to 14 and 25 rest on, so their verdicts were known when the rules were written" in registered
    assert "the lowest rate of the calibration grid at which `tis` collapsed at lag 16 and `vcpo` did not" in registered
    assert "One seed of each had been seen. Synchronous `reinforce` at these rates had not" in registered
    assert "facts 10 to 14 and 25 rest on tables that existed, so their verdicts were known" in TEXT
    assert [number for number in (10, 11, 12, 13, 14, 25) if FACTS[number].blocks] == [14], "has runs of its own"
    verdicts = pd.read_csv(FOLDER / "verdicts.csv").drop_duplicates("fact").set_index("fact")["fact_verdict"]
    reproduced = ", ".join(map(str, verdicts.index[verdicts == "reproduced"]))
    assert f"none of the three reproduced facts ({reproduced}) was an open question" in TEXT


def test_what_rests_on_other_pages_and_older_rules() -> None:
    reads = {number: set(fact.pages) for number, fact in FACTS.items() if fact.pages}
    assert sorted(reads) == [10, 11, 12, 13, 14, 15, 23, 25]
    said = TEXT.split("Some facts rest on other pages.")[1].split("<!--")[0]
    assert sorted(map(int, re.findall(r"\b(\d\d)\b(?!\.)", re.sub(r"\([^)]*\)", "", said)))) == sorted(reads)
    older = {number for number, pages in reads.items() if any(map(under_rules_1, pages))}
    assert older == {12, 14, 15, 25}
    assert "Fact 12 reads a simulation of published timings on the same page, for which nothing is trained." in said
    assert CellSettings().eval_every == before_lag.EVERY


def under_rules_1(page: str) -> bool:
    """Whether a page, or the study that a table belongs to, has the banner of rules 1.0."""
    path = DOCS / page
    place = path if path.suffix == ".md" else path.with_name("README.md")
    return place.exists() and "> **Rules 1.0**" in place.read_text()


def test_which_lags_of_the_scorecard_are_of_stale_mini_batches() -> None:
    said = prose(DOCS / "studies" / "realized-lags" / "README.md")
    lags = sorted(ONSETS.loc[ONSETS["regime"] == "minibatch", "staleness"].unique())
    assert f"Its lags {lags[0]}, {lags[1]} and {lags[2]} are of stale mini-batches" in said
    assert not set(lags) & set(ONSETS.loc[ONSETS["regime"] != "minibatch", "staleness"])


def test_token_tis_has_little_room_to_survive_longer() -> None:
    lives = SHIPPED.outcomes(*f09_batch_size.BATCHES).query("method == 'token-tis'").groupby("prompts")["life"].mean()
    said = f"Runs end at 300 updates, and TIS per token survives at least {lives.min():.0f} at every batch"
    assert said in section(9)
    assert lives.min() > 250
