"""The boundary study recovers planted signals, and sees nothing that comes later."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from boundary_study import alarms, areas, by_task, design, page, run, tables, verdicts, wording
from boundary_study.design import PILOT_SEEDS, PLACES, SEEDS
from boundary_study.tables import RIVALS, SIGNALS, Tables, joined, outcomes
from boundary_world import TRUTH, null_models, planted
from made_pages import assert_alike

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.errors import UsageError
from vcpo_bench.records import RULES_VERSION


@pytest.fixture(scope="module")
def whole() -> Tables:
    return planted(PLACES[:10])


@pytest.fixture(scope="module")
def made(whole: Tables) -> dict[str, pd.DataFrame]:
    return verdicts.made(whole)


def test_a_planted_signal_is_recovered_and_a_useless_one_is_not(made: dict[str, pd.DataFrame]) -> None:
    found = made["signals"].set_index("signal")
    ess, kl = found.loc[PRIMARY], found.loc["kl"]
    assert ess["low"] < TRUTH < ess["high"]
    assert abs(ess["auroc"] - TRUTH) < 0.06
    assert ess["verdict"] == "can tell"
    assert (ess["places"], ess["groups"], ess["failed"], ess["survivors"]) == (10, 10, 160, 160)
    assert kl["low"] < 0.5 < kl["high"] < 0.6
    assert kl["verdict"] == "cannot"
    assert 0.03 < ess["high"] - ess["low"] < 0.2


def test_a_constant_signal_gets_no_verdict(whole: Tables, made: dict[str, pd.DataFrame]) -> None:
    row = made["signals"].set_index("signal").loc["length_surge"]
    assert (row["places"], row["groups"], row["verdict"]) == (0, 0, "cannot be tested here")
    assert row[["auroc", "low", "high", "p", "p_holm"]].isna().all()
    rival = made["rivals"].set_index("rival").loc["length_surge"]
    assert (rival["places"], rival["verdict"]) == (0, "cannot be tested here")
    others = made["signals"].query("signal not in ('ess', 'length_surge')")
    assert others["p_holm"].min() == pytest.approx(min(1, others["p"].min() * len(others))), "it is not of the family"
    eos = whole.signals["task"].eq("walk-eos")
    moves = whole.signals["length_surge"].where(~eos, whole.signals["ess"])
    found = areas.panels(whole._replace(signals=whole.signals.assign(length_surge=moves)))
    row = verdicts.signal_table(found).set_index("signal").loc["length_surge"]
    assert (row["places"], row["verdict"]) == (2, "cannot be tested here")
    tasks = by_task.task_table(found).set_index(["signal", "task"])
    assert tasks.loc[("length_surge", "walk-eos"), "auroc"] == tasks.loc[("ess", "walk-eos"), "auroc"]
    assert tasks.loc[("length_surge", "walk"), "places"] == 0


def test_lags_of_one_task_and_method_are_one_unit() -> None:
    """Doubling every place by another lag of its group adds no independent evidence."""
    both = planted(PLACES[:20])
    found = areas.with_landmarks(areas.panels(both), 10)
    one = areas.area(found, PRIMARY, 10)
    assert one.each.size == 20
    assert one.groups().size == 10
    assert one.groups()[0] == pytest.approx((one.each[0] + one.each[10]) / 2)
    assert verdicts.signal_table(found).set_index("signal").loc[PRIMARY, "groups"] == 10
    twins = [place for place in found if place.group in design.GROUPS[:4]]
    assert len(twins) == 8
    assert not verdicts.enough(twins), "eight places of four groups"
    assert verdicts.enough(PLACES[:8])


def test_tasks_have_rows_of_their_own_and_disagreement_is_said(whole: Tables, made: dict[str, pd.DataFrame]) -> None:
    tasks = made["tasks"]
    assert len(tasks) == len(SIGNALS) * 3
    row = tasks.set_index(["signal", "task"]).loc[(PRIMARY, "walk")]
    each = made["places"].query("task == 'walk'")["ess_auroc"]
    assert row["auroc"] == pytest.approx(each.mean())
    assert (row["lowest"], row["highest"]) == (each.min(), each.max())
    assert row["low"] < row["auroc"] < row["high"]
    assert "For no signal" in by_task.disagreement(tasks.query("signal in ('kl', 'ess', 'length_surge')"))
    turned = whole.signals.assign(
        ess=whole.signals["ess"].where(whole.signals["task"] != "walk", -whole.signals["ess"])
    )
    apart = by_task.disagreement(by_task.task_table(areas.panels(whole._replace(signals=turned))))
    assert apart.startswith("**Tasks disagree** on `ess` (`walk` 0.2")


def test_what_only_the_onset_shows_is_not_seen_ten_updates_ahead(made: dict[str, pd.DataFrame]) -> None:
    found = made["leads"].set_index(["signal", "lead"])["auroc"]
    assert abs(found["reward_low", 10] - 0.5) < 0.05
    assert found["reward_low", 5] == 1.0
    assert made["signals"].set_index("signal").loc["reward_low", "verdict"] == "cannot"


def test_early_onsets_have_no_landmark(whole: Tables, made: dict[str, pd.DataFrame]) -> None:
    failed = made["leads"].query("signal == 'ess'").set_index("lead")["failed"]
    assert failed[20] == 160
    assert failed[40] == 160 - 10 * 2, "onset 40 has nothing 40 updates before"
    early = whole.runs.assign(onset=whole.runs["onset"].where(whole.runs["onset"].isna(), 10.0))
    found = areas.panels(whole._replace(runs=early))
    assert set(verdicts.signal_table(found)["verdict"]) == {"too few"}
    assert set(verdicts.rival_table(found)["verdict"]) == {"too few"}


def test_rivals_are_compared_in_pairs(made: dict[str, pd.DataFrame]) -> None:
    found = made["rivals"].set_index("rival")
    assert list(found.index) == list(RIVALS)
    same = found.loc["log_weight_var"]
    assert (same["verdict"], same["difference"], same["low"], same["high"]) == ("equivalent", 0.0, 0.0, 0.0)
    kl = found.loc["kl"]
    assert kl["verdict"] == "ESS better"
    assert kl["difference"] == pytest.approx(TRUTH - 0.5, abs=0.1)
    assert kl["low"] < kl["low90"] < kl["difference"] < kl["high90"] < kl["high"]
    tested = found.dropna(subset="p")
    assert len(tested) == len(RIVALS) - 1
    assert (tested["p_holm"] >= tested["p"]).all()


def test_a_rival_that_is_not_always_known_is_compared_where_it_is(whole: Tables) -> None:
    gone = whole.signals.assign(kl=whole.signals["kl"].where(whole.signals["seed"] % 2 == 0))
    found = areas.panels(whole._replace(signals=gone))
    row = verdicts.rival_table(found).set_index("rival").loc["kl"]
    everywhere = verdicts.signal_table(found).set_index("signal").loc[PRIMARY, "auroc"]
    assert row["ess"] != everywhere
    assert row["difference"] == pytest.approx(row["ess"] - row["rival_auroc"])


def test_groups_weigh_the_same_and_widen_the_interval(whole: Tables) -> None:
    """One group where ESS is reversed pulls the mean by its share, and widens the interval."""
    first = whole.signals["task"].eq(PLACES[0].task) & whole.signals["method"].eq(PLACES[0].method)
    turned = whole.signals.assign(ess=whole.signals["ess"].where(~first, -whole.signals["ess"]))
    plain, other = (
        areas.area(areas.panels(one), PRIMARY, 10).groups() for one in (whole, whole._replace(signals=turned))
    )
    assert other[0] == pytest.approx(1 - plain[0])
    assert plain.mean() - other.mean() == pytest.approx((plain[0] - other[0]) / 10)
    assert other.std() > 1.3 * plain.std()


def test_runs_the_rule_leaves_open_are_neither_case_nor_control(whole: Tables) -> None:
    unknown = whole.runs["known"].where(whole.runs["seed"] != SEEDS[-1], False)
    panel = next(iter(areas.panels(whole._replace(runs=whole.runs.assign(known=unknown))).values()))
    sets = areas.landmarks(panel, 10)
    assert sorted(set(np.flatnonzero(sets.controls.any(axis=0)))) == list(range(16, 31))


def test_alarms_before_an_onset_and_in_survivors_are_counted(made: dict[str, pd.DataFrame]) -> None:
    found = made["alarms"].set_index("detector")
    assert found.loc["kl", ["failures", "before", "in_time", "alarmed", "survivors"]].tolist() == [
        160,
        160,
        160,
        10,
        160,
    ]
    assert found.loc["kl", "median_lead"] == 20
    assert found.loc["ess", ["before", "alarmed"]].tolist() == [0, 0]
    assert found.loc[alarms.ANY, "before"] == 160


def test_survivors_are_watched_as_long_as_the_failure_they_stand_beside() -> None:
    """One place has a survivor alarmed at 50 and a silent one, the other has one alarmed at 200."""
    rows = [("walk", 40.0, 30.0), ("walk", 60.0, np.nan), ("walk", np.nan, 50.0), ("walk", np.nan, np.nan)]
    rows += [("chain", 50.0, 45.0), ("chain", np.nan, 200.0)]
    runs = pd.DataFrame(rows, columns=["task", "onset", "alarm_kl"])
    runs = runs.assign(method="tis", staleness=16, known=True, failed=runs["onset"].notna())
    row = alarms.alarm_table(runs).set_index("detector").loc["kl"]
    assert row[["before_share", "before_matched"]].tolist() == pytest.approx([2 / 3, 1 / 6])
    assert row[["in_time_share", "in_time_matched"]].tolist() == pytest.approx([1 / 3, 1 / 6])
    assert row["share"] == pytest.approx(2 / 3), "in all their updates"


def test_places_are_counted_at_their_lead(whole: Tables) -> None:
    """A signal that varies in two places of those that have landmarks is counted in two, also where places are few."""
    few = planted(PLACES[:7])
    eos = few.signals["task"].eq(PLACES[0].task)
    some = few._replace(signals=few.signals.assign(kl=few.signals["kl"].where(eos, 1.0)))
    found = areas.panels(some)
    table = verdicts.signal_table(found, 40).set_index("signal")
    assert set(table["verdict"]) == {"too few"}
    kept = areas.with_landmarks(found, 40)
    assert table.loc[PRIMARY, "places"] == len(kept) == 7
    assert table.loc["kl", "places"] == sum(place.task == PLACES[0].task for place in kept) < 7
    assert table.loc["length_surge", "places"] == 0
    rivals = verdicts.rival_table(found).set_index("rival")["places"]
    assert (rivals["kl"], rivals["length_surge"]) == (table.loc["kl", "places"], 0)


def test_a_reversed_signal_is_said(whole: Tables) -> None:
    turned = whole._replace(signals=whole.signals.assign(kl=-whole.signals["ess"], ess=whole.signals["kl"]))
    made = verdicts.made(turned)
    area = made["signals"].set_index("signal").loc["kl", "auroc"]
    said = wording.reversed_signals(made)
    assert said.startswith(f"`kl` is a **reversed signal**: AUROC {area:.2f} at 10 updates, ")
    assert "Against guessing, after Holm's adjustment" in said
    weak = made["chance"].assign(p_holm=0.3)
    assert "Nothing of that survives Holm's" in wording.reversed_signals({**made, "chance": weak})


def test_runs_of_two_sessions_add_up(whole: Tables, tmp_path: Path) -> None:
    assert Tables.read(tmp_path).runs.empty
    first = whole._replace(
        runs=whole.runs[whole.runs["seed"] < SEEDS[20]], signals=whole.signals[whole.signals["seed"] < SEEDS[20]]
    )
    second = Tables(
        whole.runs[whole.runs["seed"] >= SEEDS[19]].assign(final_reward=0.9),
        whole.signals[whole.signals["seed"] >= SEEDS[19]],
    )
    assert not areas.panels(first)
    joined(Tables.read(tmp_path), first).write(tmp_path)
    joined(Tables.read(tmp_path), second).write(tmp_path)
    both = Tables.read(tmp_path)
    assert len(both.runs) == len(whole.runs)
    assert len(both.signals) == len(whole.signals)
    assert (both.runs.loc[both.runs["seed"] == SEEDS[19], "final_reward"] == 0.9).all()
    assert outcomes(both.runs) == outcomes(whole.runs)
    assert len(areas.panels(both)) == 10
    again = tmp_path / "again"
    joined(both, Tables.empty()).write(again)
    assert (again / "signals.csv.gz").read_bytes() == (tmp_path / "signals.csv.gz").read_bytes()


def test_there_is_a_page_when_enough_places_count(
    whole: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(PLACES[:7]).write(tmp_path)
    page.refresh(tmp_path, end=True)
    assert "places that count: 7, of 7 groups; at least 8 places of 5 groups are needed" in capsys.readouterr().out
    assert not (tmp_path / "README.md").exists()
    whole.write(tmp_path)
    page.refresh(tmp_path, end=False)
    assert not (tmp_path / "README.md").exists(), "nobody looks before the end"
    with pytest.raises(UsageError, match=r"nulls\.csv is missing; first run: .* --end"):
        page.refresh(tmp_path, end=True)
    assert not (tmp_path / "places.csv").exists(), "nothing is written"
    (tmp_path / "tables").mkdir()
    null_models().to_csv(tmp_path / "tables" / "nulls.csv", index=False)
    page.refresh(tmp_path, end=True)
    text = (tmp_path / "README.md").read_text()
    assert "it has 0.50 [0.40, 0.60] (95% of 200 draws), one-sided p = 0.02. So ESS says something" in text
    assert f"> **Rules {RULES_VERSION}**" in text
    assert "| ESS better |" in text
    assert "- **ESS, 10 updates ahead: can tell.** AUROC 0.80 [0.74, 0.86] against a bar of 0.6; 160 failed" in text
    assert "*cannot be tested here*: `length_surge`" in text
    assert "*equivalent*: `log_weight_var`" in text
    assert "| length_surge | constant | constant | constant |" in text
    assert pd.read_csv(tmp_path / "tasks.csv")["places"].sum() == 10 * (len(SIGNALS) - 1)


def test_the_page_follows_from_the_shipped_runs(tmp_path: Path) -> None:
    shipped = Tables.read(tables.FOLDER)
    assert len(areas.panels(shipped)) >= design.LEAST_PLACES, "a page without the runs it rests on"
    shipped.write(tmp_path)
    shutil.copytree(tables.FOLDER / "tables", tmp_path / "tables")
    page.refresh(tmp_path, end=True)
    for made in (*tmp_path.glob("*.csv"), tmp_path / "README.md"):
        assert_alike(made, tables.FOLDER / made.name, "python tools/boundary_study/page.py --end")


def test_the_registration_says_what_the_code_does() -> None:
    whole = page.REGISTRATION.read_text()
    assert page.registration(whole) == whole, "run: python tools/boundary_study/page.py --register"
    text = " ".join(whole.split())
    assert f"> **Rules {RULES_VERSION}**" in whole
    main, search = (design.STEPS * number * design.CORE_SECONDS for number in (len(SEEDS), 4 * design.MOST_RATES))
    hours = len(PLACES) * (main + search) / 3600
    low, high = (f"{share:.0%}" for share in design.SHARE)
    for said in (
        f"{design.STEPS} updates of 16 prompts x 8 responses",
        f"Seeds {PILOT_SEEDS[0]} to {PILOT_SEEDS[-1]}, in no analysis",
        f"after {design.MOST_RATES} rates",
        f"Seeds {SEEDS[0]} to {SEEDS[-1]} at that rate",
        f"{low} to {high} of them failed. At least {design.LEAST_PLACES} places of at least "
        f"{design.LEAST_GROUPS} groups are needed",
        f"{design.CORE_SECONDS * 1000:.0f} ms of a core per update of 128 responses",
        f"so {main:.0f} core-seconds per place",
        f"at most {search:.0f} for its pilot. All {len(PLACES)} places: at most {hours:.1f} core hours",
        f"Leads {', '.join(map(str, areas.LEADS))}; the primary lead is {areas.PRIMARY_LEAD}",
        f"needs {areas.LEAST_CASES} failed seeds with a landmark",
        f"{areas.DRAWS:,} draws with a fixed seed",
        f"lies above {verdicts.BAR}, **cannot** if it lies below {verdicts.BAR}",
        f"within +-{verdicts.MARGIN}",
        f"For the {len(RIVALS)} rivals",
    ):
        assert said in text, said


def test_landmarks_are_at_updates_that_the_table_has() -> None:
    assert all(lead % 5 == 0 for lead in areas.LEADS)
    assert areas.STRIDE % 5 == 0
    assert {run.cells([(PLACES[0], 0.0, 0)])[0].config.eval_every} == {areas.STRIDE}
