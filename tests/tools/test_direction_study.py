"""The direction study measures the cosine it says, joins it to the boundary study's signals, and compares fates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from boundary_study.design import PILOT_SEEDS, PLACES, SEEDS, Place
from boundary_study.run import cells
from boundary_study.tables import RUN, Tables
from boundary_world import TRUTH, planted
from direction_study import page, run, tables, verdicts
from direction_study.retraced import cosine, retraced
from direction_study.tables import NAME, Measured
from direction_study.wording import answer

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.records import STEPS_FILE

CHOSEN = PLACES[:8]
LAG, STEPS = 2, 6


@pytest.fixture(scope="module")
def first() -> Tables:
    return planted(CHOSEN)


@pytest.fixture
def world(first: Tables, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Runs whose direction is ESS from update to update, and whose fates are those of the first time."""
    monkeypatch.setattr(verdicts, "places", lambda: dict.fromkeys(CHOSEN, 0.0))
    monkeypatch.setattr(tables, "places", lambda: dict.fromkeys(CHOSEN, 0.0))
    main = first.runs[first.runs["seed"].isin(SEEDS)]
    each = [own.assign(step=own["update"] - 1, cosine=own[PRIMARY]) for _, own in first.signals.groupby(RUN)]
    return Measured(Tables(main, first.signals), pd.concat(each)[[*RUN, "step", "cosine"]])


def test_the_cosine_of_two_vectors() -> None:
    east, north = torch.tensor([2.0, 0.0]), torch.tensor([3.0, 3.0])
    assert cosine(east, north) == pytest.approx(0.5**0.5)
    assert cosine(east, -east) == -1.0
    assert np.isnan(cosine(east, torch.zeros(2)))


def test_steps_are_compared_with_the_way_since_the_data_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boundary_study.run.STEPS", STEPS)
    planned = cells([(Place("walk", "tis", LAG, 5.6e-4), 0.0, seed) for seed in (1, 2)])
    ways = retraced(planned)
    alone = build_trainer(planned[1].config, start=planned[1].start)
    weights = [_flat(alone.policy.trainable())]
    while not alone.status:
        alone.advance()
        weights.append(_flat(alone.policy.trainable()))
    wanted = [_cosine(weights[t + 1] - weights[t], weights[t] - weights[max(t - LAG, 0)]) for t in range(1, STEPS)]
    assert np.isnan(ways[1].cosines[0]), "the weights have not moved yet"
    assert ways[1].cosines[1:] == pytest.approx(wanted, rel=1e-9)
    assert ways[0].cosines[1:] != pytest.approx(wanted, rel=1e-3), "another seed"
    recorded, ours = (each.recorder.tables[STEPS_FILE].columns["grad_norm"] for each in (alone, ways[1].trainer))
    assert recorded == ours, "watching changes nothing"


def _flat(parameters: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([each.detach().numpy().astype(np.float64).ravel() for each in parameters])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_planted_direction_is_found(world: Measured, first: Tables) -> None:
    assert world.complete
    made = verdicts.made(world, first)
    row = made["directions"].set_index("lead").loc[10]
    assert row["verdict"] == "can tell"
    assert row["auroc"] == pytest.approx(TRUTH, abs=0.08)
    assert made["rival"].loc[0, "verdict"] == "equivalent", "it is ESS under another name"
    agreement = made["agreement"].iloc[0]
    assert (agreement["identical"], agreement["known"], agreement["agree"]) == (256, 256, 256)
    assert "fates on another processor were not tested" in answer(made)
    assert (made["again"]["difference"].dropna() == 0).all()


def test_a_direction_that_is_noise_is_not(world: Measured, first: Tables) -> None:
    noise = np.random.default_rng(1).normal(size=len(world.cosines))
    made = verdicts.made(world._replace(cosines=world.cosines.assign(cosine=noise)), first)
    row = made["directions"].set_index("lead").loc[10]
    assert row["auroc"] == pytest.approx(0.5, abs=0.1)
    assert row["verdict"] != "can tell"
    assert made["rival"].loc[0, "verdict"] == "ESS better"


@pytest.mark.parametrize(
    ("turned", "agree", "verdict"),
    [(0, 32, "the seed decides"), (4, 24, "part of it"), (8, 16, "nothing of the seed is left")],
)
def test_fates_are_compared(world: Measured, first: Tables, turned: int, agree: int, verdict: str) -> None:
    """Half of the seeds fail; `turned` of each half meet the other fate."""
    order = first.runs["seed"].rank(method="dense") - len(PILOT_SEEDS)
    flipped = order.between(1, turned) | order.between(17, 16 + turned)
    again = first.runs.assign(failed=first.runs["failed"].astype(bool) ^ flipped)
    fates = verdicts.fate_table(again[again["seed"].isin(SEEDS)], first.runs)
    assert fates["agree"].tolist() == [agree] * 8
    assert fates["by_chance"].tolist() == pytest.approx([16.0] * 8)
    assert fates["kappa"].tolist() == pytest.approx([1 - turned / 8] * 8)
    found = verdicts.agreement_table(fates, 3).iloc[0]
    assert found["verdict"] == verdict
    said = answer(verdicts.made(world, first) | {"agreement": pd.DataFrame([found])})
    assert f"Of 256 seeds whose fate is known both times, {8 * agree} meet the same one; 128 would by chance" in said


def test_seeds_whose_fate_is_open_are_not_compared(world: Measured, first: Tables) -> None:
    opened = first.runs.assign(known=first.runs["seed"] != SEEDS[3])
    assert verdicts.fate_table(world.tables.runs, opened)["known"].tolist() == [31] * 8


def test_runs_that_differ_in_one_digit_are_not_the_same(first: Tables) -> None:
    other = first.signals.copy()
    other.loc[other.index[0], PRIMARY] += 1e-5
    assert verdicts.identical(first.signals, first.signals) == 256
    assert verdicts.identical(other, first.signals) == 255
    assert verdicts.identical(first.signals[first.signals["seed"] == SEEDS[0]], first.signals) == 8


def test_the_trailing_mean_takes_five_updates() -> None:
    own = pd.DataFrame({name: ["x"] * 12 for name in RUN} | {"step": range(12), "cosine": [np.nan, *range(1, 12)]})
    signals = own[RUN].assign(update=[*range(1, 13)]).query("update % 5 == 0")
    found = Measured(Tables(own[RUN][:1], signals), own).signals()
    assert found[NAME].tolist() == [2.5, 7.0], "mean of updates 1 to 4, and of 5 to 9; update 0 has none"


def test_there_is_no_page_before_the_end(
    world: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page.refresh(tmp_path)
    short = Tables(world.tables.runs[:-1], world.tables.signals)
    world._replace(tables=short).write(tmp_path)
    page.refresh(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        f"{count} runs; not complete, so there is no page" for count in (0, 255)
    ]
    monkeypatch.setattr("sys.argv", ["page.py", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        page.main()
    assert ended.value.code == 2
    assert "has no cosines; first run" in capsys.readouterr().err


@pytest.mark.slow  # starts two workers
def test_runs_are_made_kept_and_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boundary_study.run.STEPS", 12)
    runs = [(PLACES[8], 0.0, seed) for seed in SEEDS[:3]]
    assert run.measure(runs, tmp_path) == f"walk-eos, reinforce, lag 16: 3 runs from seed {SEEDS[0]} on"
    found = Measured.of(tmp_path)
    assert found.tables.runs["seed"].tolist() == list(SEEDS[:3])
    assert found.cosines.groupby("seed").size().tolist() == [12] * 3
    assert found.signals()[NAME].notna().all()
    monkeypatch.setattr(run, "retraced", lambda planned: pytest.fail("it has been made"))
    run.measure(runs, tmp_path)
