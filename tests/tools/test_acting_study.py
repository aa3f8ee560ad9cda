"""The acting study finds planted effects, acts at the registered times, and says what it has not shown."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from acting_study import by_rule, design, page, tables, verdicts, wording
from acting_study.design import NOTHING, SEEDS, SLOWER, STEPS, WAVES, Heard, Parent, Policy
from made_pages import assert_alike

from vcpo_bench.records import RULES_VERSION

FIRST = SEEDS[0]
OLD = WAVES[0]
Reward = Callable[[Policy, float], float]


def alarms(parent: Parent) -> float:
    """Risky parents are alarmed at update 60 plus their place in the wave; the last one, and calm ones, are silent."""
    place = (parent.seed - FIRST) % 8
    return 60.0 + place if parent.group == "risky" and place != 7 else np.nan


def heard() -> dict[Parent, Heard]:
    return {parent: Heard(alarms(parent), STEPS) for parent in design.parents()}


def row(parent: Parent, act: str, at: int, reward: float, failed: bool) -> dict[str, object]:
    place = {"task": parent.task, "group": parent.group, "seed": parent.seed, "act": act, "at": at}
    facts = {"method": "any", "lr": parent.lr, "event": "collapse" if failed else "healthy", "failed": failed}
    facts |= {"down": failed, "onset": 80.0 if failed else np.nan, "final_reward": reward, "updates": STEPS}
    return place | facts | {"alarm": alarms(parent) if act == NOTHING else np.nan}


def planted(gain: Reward, failing: int = 16) -> pd.DataFrame:
    """Every run of the study: risky parents end at 0.1, calm ones at 0.6, and a treatment adds its gain."""
    rows = []
    for policy, branch in design.branches(heard()).items():
        parent = policy.parent
        risky = parent.group == "risky"
        base = (0.1 if risky else 0.6) + 0.01 * np.random.default_rng(parent.seed).normal()
        if branch is None and policy.act == NOTHING:
            rows.append(row(parent, NOTHING, 0, base, risky and parent.seed - FIRST < failing))
        elif branch is not None:
            noise = 0.01 * np.random.default_rng([parent.seed, len(policy.act), branch.at]).normal()
            rows.append(row(parent, policy.act, branch.at, base + noise + gain(policy, branch.at), False))
    return pd.DataFrame(rows).sort_values(tables.RUN).reset_index(drop=True)


def rescues(policy: Policy, at: float) -> float:
    """`vcpo` gives 0.6 less 0.01 for each update from 65, `tis` the same, a smaller rate 0.2; calm runs lose 0.1."""
    if policy.parent.group == "calm":
        return -0.1 if policy.act == "vcpo" else 0.0
    if policy.when == "placebo":
        return 0.1
    return 0.2 if policy.act == SLOWER else 0.6


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return planted(rescues)


def test_alarms_are_heeded_and_silence_is_kept() -> None:
    found = design.branches(heard())
    spoken, silent = Parent("walk", "risky", 202), Parent("walk", "risky", 207)
    assert found[Policy(spoken, "never", NOTHING)] is None
    assert [found[Policy(spoken, "alarm", act)].at for act in ("vcpo", "tis", SLOWER)] == [62, 62, 62]
    assert found[Policy(silent, "alarm", "vcpo")] is None
    assert found[Policy(silent, "placebo", "vcpo")] is not None
    assert found[Policy(Parent("chain", "calm", 202), "false alarm", "vcpo")].at == 62
    assert found[Policy(Parent("chain", "calm", 207), "false alarm", SLOWER)].at == 63, "the mean of the others"
    assert len(found) == 2 * 16 * (6 + 3)


def test_a_parent_that_had_ended_is_left_alone() -> None:
    short = heard() | {Parent("walk", "risky", 202): Heard(62.0, 62), Parent("walk", "calm", 203): Heard(np.nan, 40)}
    found = design.branches(short)
    assert found[Policy(Parent("walk", "risky", 202), "alarm", "tis")] is None
    assert found[Policy(Parent("walk", "calm", 203), "false alarm", "vcpo")] is None
    nobody = {parent: Heard(np.nan, STEPS) for parent in design.parents()}
    assert not any(design.branches(nobody).values())


@pytest.mark.parametrize("task", ["walk", "chain"])
@pytest.mark.parametrize("alarm", [1.0, 2.0, 57.0, 60.0, 150.0])
def test_placebos_lie_evenly_around_the_mean_alarm(task: str, alarm: float) -> None:
    known = dict.fromkeys(OLD, alarm)
    drawn = sorted(design.placebo(Parent(task, "risky", seed), known) for seed in OLD)
    assert np.mean(drawn) == alarm
    assert (drawn[0], drawn[-1]) == (round(0.5 + (2 * alarm - 1) / 16), 2 * alarm - drawn[0])
    gaps = np.diff(drawn)
    assert abs(gaps - (2 * alarm - 1) / 8).max() < 1, "equal strata"


def test_a_placebo_knows_the_others_and_not_its_own_run() -> None:
    known = {seed: 60.0 + 3 * (seed - FIRST) for seed in OLD}
    drawn = [design.placebo(Parent("walk", "risky", seed), known) for seed in OLD]
    assert drawn == [design.placebo(Parent("walk", "risky", seed), known | {seed: np.nan}) for seed in OLD]
    assert drawn != [design.placebo(Parent("chain", "risky", seed), known) for seed in OLD]
    assert drawn != sorted(drawn), "which stratum a seed has is a permutation"
    assert np.isnan(design.placebo(Parent("walk", "risky", FIRST), dict.fromkeys(OLD, np.nan) | {FIRST: 60.0}))


def test_placebos_of_late_alarms_lie_within_the_run() -> None:
    late = [design.placebo(Parent("walk", "risky", seed), dict.fromkeys(OLD, 290.0)) for seed in OLD]
    assert max(late) <= STEPS - 1
    assert np.mean(late) == STEPS / 2, "smaller than the mean alarm"


def test_a_wave_of_seeds_knows_nothing_of_the_other() -> None:
    late = {one: Heard(250.0 if one.seed in WAVES[1] else 60.0, STEPS) for one in design.parents()}
    for wave, mean in zip(WAVES, (60, 150), strict=True):
        drawn = [design.update_of(Parent("walk", "risky", seed), "placebo", late) for seed in wave]
        assert np.mean(drawn) == mean
    orders = [
        np.argsort([design.update_of(Parent("walk", "risky", s), "placebo", late) for s in wave]) for wave in WAVES
    ]
    assert orders[0].tolist() != orders[1].tolist()


def test_planted_effects_are_found(runs: pd.DataFrame) -> None:
    made = verdicts.made(runs)
    primary, secondary = made["primary"], made["secondary"]
    assert list(primary["task"]) == ["walk", "chain"]
    assert set(primary["verdict"]) == {"higher"}
    assert (primary["apart"] == 14).all(), "one of 8 was silent, and counts as it is"
    assert primary["difference"].to_numpy() == pytest.approx(0.6 * 7 / 8, abs=0.02)
    walk = secondary[secondary["task"] == "walk"].set_index(["one", "other"])["verdict"].to_dict()
    assert walk == {
        ("vcpo at the alarm", "vcpo at a placebo time"): "higher",
        ("tis at the alarm", "no act"): "higher",
        (f"{SLOWER} at the alarm", "no act"): "higher",
        ("tis at the alarm", "vcpo at the alarm"): "equivalent",
        (f"{SLOWER} at the alarm", "vcpo at the alarm"): "lower",
        ("vcpo at a false alarm", "no act"): "lower",
        (f"{SLOWER} at a false alarm", "no act"): "equivalent",
    }
    assert (secondary["p_holm"] >= secondary["p"]).all()
    added = made["added"]
    assert list(zip(added["task"], added["one"], added["other"], added["verdict"], strict=True)) == [
        (task, "clip at the alarm", other, verdict)
        for task in ("walk", "chain")
        for other, verdict in (("no act", "higher"), ("vcpo at the alarm", "equivalent"))
    ]


def test_each_wave_stands_beside_all_seeds(runs: pd.DataFrame) -> None:
    """The gain of one contrast is taken from the second wave only."""
    weaker = (
        (runs["seed"].isin(WAVES[1])) & (runs["task"] == "walk") & (runs["act"] == SLOWER) & (runs["group"] == "risky")
    )
    made = verdicts.made(runs.assign(final_reward=runs["final_reward"] - 0.2 * weaker))
    waves = made["waves"]
    assert waves["wave"].value_counts().to_dict() == {"200 to 207": 16, "208 to 215": 16}
    assert (waves["seeds"] == 8).all()
    place = (waves["task"] == "walk") & (waves["one"] == f"{SLOWER} at the alarm") & (waves["other"] == "no act")
    assert waves.loc[place, "verdict"].tolist() == ["higher", "equivalent"]
    said = wording.agreement(made)
    assert (
        "Seeds 208 to 215 alone give the verdict of seeds 200 to 207 alone in 15 of 16 contrasts, and in 15 that"
        in said
    )
    assert said.endswith(f"differ in: `walk`, {SLOWER} at the alarm minus no act (higher, then equivalent).")


def test_runs_are_saved_and_lost_in_pairs(runs: pd.DataFrame) -> None:
    lost = (runs["group"] == "calm") & (runs["act"] == "vcpo") & (runs["seed"] == 204)
    worse = runs.assign(failed=runs["failed"] | lost, down=runs["down"] | lost)
    found = verdicts.made(worse)["treatments"].set_index(["task", "parents", "treatment"])
    at_alarm = found.loc[("walk", "risky", "vcpo at the alarm")]
    assert at_alarm[["seeds", "acted", "median_at", "failed"]].tolist() == [16, 14, 63, 2]
    assert at_alarm[["down", "saved", "lost"]].tolist() == [2, 14, 0]
    assert found.loc[("walk", "calm", "vcpo at a false alarm"), ["down", "saved", "lost"]].tolist() == [1, 0, 1]
    assert found.loc[("chain", "risky", "no act"), ["acted", "failed", "saved", "lost"]].tolist() == [0, 16, 0, 0]


def test_failures_by_the_rule_are_counted_in_pairs(runs: pd.DataFrame) -> None:
    table = tables.treated(runs)
    walk = (table["task"] == "walk") & (table["group"] == "risky") & (table["act"] == "vcpo")
    alarm, placebo = (walk & (table["when"] == when) for when in ("alarm", "placebo"))
    failed = (alarm & table["seed"].isin((200, 201))) | (placebo & table["seed"].isin((201, *range(208, 215))))
    found = by_rule.rule_table(table.assign(failed=failed)).set_index("task")
    columns = ["seeds", "at_alarm", "at_placebo", "only_at_alarm", "only_at_placebo"]
    assert found.loc["walk", columns].tolist() == [16, 2, 8, 1, 7]
    assert found.loc["both", columns].tolist() == [32, 2, 8, 1, 7]
    assert found.loc["both", "p"] == pytest.approx(2 * (1 + 8) / 2**8)
    assert np.isnan(found.loc["chain", "p"])
    assert "1 fail at the alarm only, 7 at the placebo time only (sign test, p = 0.070: undecided)" in wording.by_rule(
        found.reset_index()
    )


def test_a_folder_without_runs_of_the_study_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tables.RUNS.read_bytes()
    with pytest.raises(SystemExit) as ended:
        page.main([str(tmp_path / "missing")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("missing holds no runs of this study\n")
    assert tables.RUNS.read_bytes() == before


def test_placebos_are_split_by_the_alarm_of_their_parent(runs: pd.DataFrame) -> None:
    table = tables.treated(runs)
    placebo = (table["task"] == "walk") & (table["when"] == "placebo")
    rewards = {seed: float(number) for number, seed in enumerate(SEEDS)}
    times = dict(zip(SEEDS, 2 * (10, 20, 62, 90, np.nan, 30, 99, 70), strict=True))
    seeds = table["seed"]
    moved = table.assign(
        at=table["at"].mask(placebo, seeds.map(times)),
        final_reward=table["final_reward"].mask(placebo, seeds.map(rewards)),
    )
    found = verdicts.placebo_table(moved).set_index(["task", "placebo"]).loc["walk"]
    assert found["runs"].to_dict() == {"before its alarm": 6, "at its alarm or later": 6, "no alarm": 2}
    assert found["reward"].tolist() == pytest.approx([6.0, 23 / 3, 11.0]), "seeds 204 and 212 ended before"


def test_parents_and_their_alarms_are_counted(runs: pd.DataFrame) -> None:
    late = runs["onset"].where((runs["seed"] != 203) | runs["onset"].isna(), 50.0)
    found = verdicts.parent_table(runs.assign(onset=late)).set_index(["task", "parents"])
    risky = found.loc[("walk", "risky")]
    assert risky[["failed", "alarmed", "median_alarm", "before_onset", "median_lead"]].tolist() == [16, 14, 63, 13, 17]
    calm = found.loc[("walk", "calm")]
    assert (calm["lr"], calm["failed"], calm["alarmed"], calm["low"]) == (5e-5, 0, 0, 0.0)
    assert 0 < calm["high"] < 0.4


def test_there_is_no_verdict_without_failures_acts_or_health(runs: pd.DataFrame) -> None:
    few = verdicts.made(planted(rescues, failing=7))
    assert set(few["primary"]["verdict"]) == {"too few failures"}
    assert few["primary"]["p"].isna().all()
    whole = tables.treated(runs)
    silent = whole.assign(at=whole["at"].where((whole["when"] != "alarm") | (whole["seed"] < 207)))
    assert set(verdicts.contrast_table(silent, [verdicts.PRIMARY])["verdict"]) == {"too few acts"}
    sick = whole.assign(failed=whole["failed"] | (whole["group"] == "calm") & (whole["seed"] < 205))
    rows = verdicts.contrast_table(sick, verdicts.SECONDARY)
    ill = rows["verdict"] == "parents not healthy"
    assert rows.loc[ill, "one"].unique().tolist() == ["vcpo at a false alarm", f"{SLOWER} at a false alarm"]
    assert rows["p_holm"].notna().sum() == 10, "the others alone are corrected together"


def test_the_placebo_is_another_run_only_at_another_update(runs: pd.DataFrame) -> None:
    table = tables.treated(runs)
    own = table[(table["when"] == "alarm") & (table["act"] == "vcpo")].set_index(["task", "group", "seed"])["at"]
    same = table["when"].eq("placebo") & (table["seed"] < 209)
    index = pd.MultiIndex.from_frame(table[["task", "group", "seed"]])
    moved = table.assign(at=table["at"].mask(same, pd.Series(own.reindex(index).to_numpy(), table.index)))
    rows = verdicts.contrast_table(moved, verdicts.SECONDARY[:1])
    assert set(rows["apart"]) == {7}
    assert set(rows["verdict"]) == {"too few acts"}


def test_there_is_a_page_when_every_run_has_ended(
    runs: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.iloc[1:].to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    assert "not complete, so there is no page" in capsys.readouterr().out
    assert not (tmp_path / "README.md").exists()
    runs.to_csv(tmp_path / "runs.csv", index=False)
    page.refresh(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert f"> **Rules {RULES_VERSION}**" in text
    assert "- `walk`: vcpo at the alarm minus no act 0.5" in text
    assert "tis at the alarm minus vcpo at the alarm" in text
    assert text.count("**equivalent**") == 6
    assert "-0.00" not in text.split("## Answer")[1].split("\n## ")[0]
    for verdict in ("too few acts", "too few failures", "parents not healthy"):
        assert f"*{verdict}*, where" in " ".join(text.split()), "a verdict that may stand in a table is explained"


def test_the_page_follows_from_the_shipped_runs(tmp_path: Path) -> None:
    shipped = tables.shipped(tables.RUNS)
    assert tables.complete(shipped), "a page without the runs it rests on"
    shipped.to_csv(tmp_path / "runs.csv", index=False, float_format="%.10g")
    page.refresh(tmp_path)
    for made in tmp_path.glob("*.[mc][ds]*"):
        assert_alike(made, tables.FOLDER / made.name, "python tools/acting_study/page.py")
