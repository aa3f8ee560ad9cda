"""The direction study measures the cosine it says, joins it to the boundary study's signals, and compares fates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from boundary_study.design import PLACES, SEEDS
from boundary_study.tables import FOLDER, RUN, Tables
from boundary_world import TRUTH, planted
from direction_study import fates, page, tables, verdicts
from direction_study.tables import EARLIER, HOME, NAME, Measured
from direction_study.wording import answer
from run_archives.archive import read
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError

CHOSEN = PLACES[:8]


@pytest.fixture(scope="module")
def first() -> Tables:
    return planted(CHOSEN)


@pytest.fixture
def world(first: Tables, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Runs whose direction is the ESS score at every update, and whose fates are those of the first time."""
    for module in (verdicts, fates, tables):
        monkeypatch.setattr(module, "places", lambda: dict.fromkeys(CHOSEN, 0.0))
    main = first.runs[first.runs["seed"].isin(SEEDS)]
    each = [own.iloc[[0]].merge(pd.DataFrame({"step": range(300)}), how="cross") for _, own in main.groupby(RUN)]
    steady = first.signals.groupby(RUN)[PRIMARY].first().rename("cosine").reset_index()
    cosines = pd.concat(each)[[*RUN, "step"]].merge(steady, on=RUN)
    machines = pd.DataFrame([{"processor": "an abacus", "torch": "2.13", "runs": 256}])
    return Measured(Tables(main, first.signals), cosines, machines)


def jittered(first: Tables) -> Tables:
    """The first tables with another last digit in every run."""
    return Tables(first.runs, first.signals.assign(kl=first.signals["kl"] + 1e-5))


def test_a_planted_direction_is_found(world: Measured, first: Tables) -> None:
    assert not world.missing
    made = verdicts.made(world, first)
    row = made["directions"].set_index("lead").loc[10].iloc[0]
    assert row["verdict"] == "can tell"
    assert row["auroc"] == pytest.approx(TRUTH, abs=0.08)
    assert made["rival"].loc[0, "verdict"] == "equivalent", "it is ESS under another name"
    assert made["directions"]["signal"].tolist() == [NAME] * 4 + [EARLIER]
    assert made["directions"]["auroc"].tolist()[4] == pytest.approx(row["auroc"]), "it is as steady as ESS"
    assert (made["again"]["difference"].dropna() == 0).all()
    assert made["agreement"].loc[0, ["runs", "identical", "known", "verdict"]].tolist() == [256, 256, 0, "not tested"]
    assert "*not tested*. 256 of 256 runs are the same in every digit that ships." in answer(made)


@pytest.mark.parametrize(("jump", "verdict"), [(0, "can tell"), (1, "cannot")])
def test_nothing_after_a_landmark_is_known(world: Measured, first: Tables, jump: int, verdict: str) -> None:
    """A direction that jumps with the last update before the landmark, or with the first one after it."""
    onset = world.cosines.merge(world.tables.runs[[*RUN, "onset"]], on=RUN)["onset"].fillna(1000)
    noise = np.random.default_rng(1).normal(size=len(world.cosines))
    late = noise + 100 * (world.cosines["step"] >= onset - 10 - 1 + jump)
    found = verdicts.made(world._replace(cosines=world.cosines.assign(cosine=late)), first)["directions"]
    rows = found[found["lead"] == 10].set_index("signal")
    assert rows.loc[NAME, "verdict"] == verdict
    assert rows.loc[NAME, "auroc"] == pytest.approx(0.5 if jump else 1.0, abs=0.1)
    assert rows.loc[EARLIER, "auroc"] == pytest.approx(0.5, abs=0.1), "an update earlier it has not jumped"


def test_a_direction_that_is_noise_loses_to_ess(world: Measured, first: Tables) -> None:
    noise = np.random.default_rng(1).normal(size=len(world.cosines))
    made = verdicts.made(world._replace(cosines=world.cosines.assign(cosine=noise)), first)
    assert made["rival"].loc[0, "verdict"] == "ESS better"


def test_too_few_failures_are_said(world: Measured, first: Tables) -> None:
    saved = world.tables.runs.assign(
        failed=world.tables.runs["failed"].astype(bool) & (world.tables.runs["seed"] < 203)
    )
    made = verdicts.made(world._replace(tables=world.tables._replace(runs=saved)), jittered(first))
    assert made["directions"].loc[1, "verdict"] == "too few"
    said = answer(made)
    assert "**The direction, 10 updates ahead: too few.**" in said
    assert "ESS less the direction, paired: **too few**." in said
    assert "*not tested*. 0 of 256" in said, "three seeds that fail are no kappa"


@pytest.mark.parametrize(
    ("turned", "agree", "verdict"),
    [
        (0, 32, "the seed decides nearly all"),
        (4, 24, "the seed decides part of it"),
        (8, 16, "little of the seed is left"),
    ],
)
def test_fates_are_compared(world: Measured, first: Tables, turned: int, agree: int, verdict: str) -> None:
    """Half of the seeds fail; `turned` of each half meet the other fate."""
    runs = world.tables.runs
    flipped = runs["seed"].between(SEEDS[0], SEEDS[0] + turned - 1)
    flipped |= runs["seed"].between(SEEDS[16], SEEDS[16] + turned - 1)
    again = Tables(runs.assign(failed=runs["failed"].astype(bool) ^ flipped), first.signals)
    made = verdicts.made(world, first)
    paired = fates.pairs(again, jittered(first))
    found = fates.fate_table(paired)
    assert found["agree"].tolist() == [agree] * 8
    assert found["at_most"].tolist() == [32] * 8
    assert found["by_chance"].tolist() == pytest.approx([16.0] * 8)
    assert found["kappa"].tolist() == pytest.approx([1 - turned / 8] * 8)
    made["agreement"] = fates.agreement_table(found, paired)
    row = made["agreement"].iloc[0]
    assert row["verdict"] == verdict
    assert 0 < row["high"] - row["low"] < 0.1, "as in every group, and yet not known exactly"
    assert f"Of 256 others whose fate is known both times, {8 * agree} meet the same one; 128 would by" in answer(made)
    assert "Of the 128 runs that failed this time, 0 had parted from the first training by" in answer(made)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.05, 0.25, "undecided"),
        (0.05, 0.19, "little of the seed is left"),
        (0.15, 0.6, "undecided"),
        (0.25, 0.6, "the seed decides part of it"),
        (0.5, 0.9, "undecided"),
        (0.85, 0.95, "the seed decides nearly all"),
    ],
)
def test_the_verdict_is_of_the_interval(low: float, high: float, verdict: str) -> None:
    assert fates.decided(low, high) == verdict


def test_seeds_whose_fate_is_open_or_that_all_fail_are_not_compared(world: Measured, first: Tables) -> None:
    other = jittered(first)
    opened = other._replace(runs=first.runs.assign(known=first.runs["seed"] != SEEDS[3]))
    assert fates.fate_table(fates.pairs(world.tables, opened))["known"].tolist() == [31] * 8
    runs = world.tables.runs
    lost = Tables(runs.assign(failed=runs["failed"].astype(bool) | (runs["method"] == "tis")), first.signals)
    found = fates.fate_table(fates.pairs(lost, other)).set_index("method")
    assert found.loc["tis", "kappa"].isna().all(), "where all fail the two have nothing to agree on"
    assert found.loc["clip", "kappa"].notna().all()


def test_runs_that_differ_in_one_digit_part_when_their_ess_does(world: Measured, first: Tables) -> None:
    signals, seed = first.signals.copy(), first.signals["seed"] == SEEDS[20]
    signals.loc[seed & (signals["update"] >= 45), PRIMARY] += 1e-4
    signals.loc[seed & (signals["update"] >= 70), PRIMARY] += 0.2
    paired = fates.pairs(Tables(world.tables.runs, signals), first)
    assert paired["identical"].sum() == 256 - 8
    assert set(paired.loc[~paired["identical"], "seed"]) == {SEEDS[20]}
    assert set(paired.loc[paired["seed"] == SEEDS[20], "parted"]) == {70.0}
    assert paired["parted"].notna().sum() == 8
    table = fates.parting_table(paired)
    found = fates.fate_table(paired)
    assert found[["known", "parted", "parted_agree"]].drop_duplicates().to_numpy().tolist() == [[1, 1, 1]]
    assert table[["runs", "parted", "median_parting", "failed", "parted_before"]].iloc[0].tolist() == [32, 1, 70, 16, 0]


def test_the_trailing_mean_takes_five_updates(world: Measured) -> None:
    own = pd.DataFrame({name: ["x"] * 12 for name in RUN} | {"step": range(12), "cosine": [np.nan, *range(1, 12)]})
    signals = own[RUN].assign(update=[*range(1, 13)]).query("update % 5 == 0")
    found = Measured(Tables(own[RUN][:1], signals), own, world.machines).signals()
    assert found[NAME].tolist() == [2.5, 7.0], "mean of updates 1 to 4, and of 5 to 9; update 0 has none"
    assert found[EARLIER].tolist() == [2.0, 6.0]


def test_there_is_no_page_before_the_end(
    world: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page.refresh(tmp_path)
    assert capsys.readouterr().out == "no page: 0 of 256 runs have ended\n"
    assert Measured.read(tmp_path).missing
    half = world.cosines[world.cosines["step"] < 20]
    twice = pd.concat([world.cosines, world.cosines])
    two = pd.concat([world.machines, world.machines.assign(processor="a sundial")])
    short = Tables(world.tables.runs[:-1], world.tables.signals)
    for part, said in (
        (world._replace(tables=short), "255 of 256 runs have ended"),
        (world._replace(cosines=half), "not every update has one cosine"),
        (world._replace(cosines=twice), "not every update has one cosine"),
        (world._replace(machines=two), "of several processors"),
    ):
        assert said in part.missing
    monkeypatch.setattr(Measured, "of", lambda results: world._replace(tables=short))
    with pytest.raises(UsageError, match="is not complete: 255 of 256"):
        page.take(tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_page_is_written(world: Measured, first: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tables, "read", classmethod(lambda cls, folder: jittered(first)))
    monkeypatch.setattr(page.Measured, "read", classmethod(lambda cls, folder: world))
    page.refresh(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "another processor model (an abacus) and watched" in text
    assert "**Fates on another processor: the seed decides nearly all.**" in text
    assert "{{" not in text


def test_the_page_is_that_of_the_shipped_runs(tmp_path: Path) -> None:
    for path in HOME.glob("*.csv*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    page.refresh(tmp_path)
    for path in [HOME / "README.md", *HOME.glob("*.csv")]:
        assert (tmp_path / path.name).read_text() == path.read_text(), f"{path.name}: run tools/direction_study/page.py"


def test_a_folder_without_cosines_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["page.py", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        page.main()
    assert ended.value.code == 2
    assert "has no cosines; first run" in capsys.readouterr().err


@pytest.mark.slow  # unpacks every run
def test_the_shipped_updates_make_the_shipped_tables(tmp_path: Path) -> None:
    unpack_folder(HOME / "updates", tmp_path)
    made, shipped = Tables.of(tmp_path), Measured.read(HOME)
    pd.testing.assert_frame_equal(made.runs, shipped.tables.runs, check_dtype=False, rtol=1e-5)
    signals = made.signals.sort_values([*RUN, "update"]).reset_index(drop=True)
    ours = shipped.tables.signals.sort_values([*RUN, "update"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(signals, ours, check_dtype=False, rtol=1e-4, atol=2e-5)
    processors = {each["processor"] for each in load(tmp_path).cells["provenance"]}
    assert processors == set(shipped.machines["processor"])
    assert processors.isdisjoint({"AMD EPYC"}), "the page says that the first training was made there"
    facts = [cell for path in (FOLDER / "updates").glob("*.zip") for cell in read(path).facts]
    assert {cell["provenance"]["processor"] for cell in facts} == {"AMD EPYC"}
