"""The study of configurations finds what is planted, by the units that were registered."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from configuration_study import design
from configuration_study.areas import _places, rivals, telling, unread
from configuration_study.panels import with_units
from configuration_study.tables import unpacked

from vcpo_bench.analysis.monitoring.signal import PRIMARY, all_signals
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel
from vcpo_bench.errors import UsageError

METHODS, RATES, SEEDS, UPDATES = 12, 4, 4, 200
WHERE = {"lead": 20, "landmarks": design.ALL}


def planted(knows: float, rng: np.random.Generator, methods: int = METHODS, noise: float = 0.8) -> Panel:
    """Two tasks; fates depend on the learning rate and on chance, and so does ESS; the KL is ESS again."""
    place = pd.MultiIndex.from_product(
        [("chain", "walk"), range(methods), range(RATES), range(SEEDS)], names=["task", "method", "rung", "seed"]
    )
    runs = place.to_frame(index=False)
    rung, chance = runs["rung"].to_numpy(float), rng.normal(size=len(runs))
    failed = rung - 1.5 + noise * chance > 0
    onset = np.where(failed, rng.integers(8, 18, len(runs)) * 10.0, np.inf)
    level = rung + knows * chance + 0.01 * rng.normal(size=len(runs))
    ess = level[:, None] + 1e-6 * rng.normal(size=(len(runs), UPDATES))
    rate = np.repeat(rung[:, None], UPDATES, axis=1)
    runs = runs.assign(key=[str(n) for n in range(len(runs))], regime="fifo", staleness=16, steps_done=UPDATES)
    runs = runs.assign(method=[f"m{one}" for one in runs["method"]], lr=1e-4 * 2**rung)
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"), failed=failed)
    noises = {name: rng.normal(size=(len(runs), UPDATES)) for name in ("reward_low", "reward_drop")}
    values = {"ess": ess, "kl": ess + 1e-9, "lr": rate, **noises}
    panel = Panel(runs, values, onset, onset, np.full(len(runs), float(UPDATES)), 10)
    return with_units(panel, np.ones(len(runs)))


def one(table: pd.DataFrame, **place: object) -> pd.Series:
    kept = table
    for name, value in place.items():
        kept = kept[kept[name] == value]
    assert len(kept) == 1
    return kept.iloc[0]


def test_what_is_planted_is_found() -> None:
    panel = planted(0.8, np.random.default_rng(0))
    assert np.unique(panel.cluster).size == 2 * METHODS
    told, compared = telling(panel), rivals(panel)
    for task in (design.ALL, "chain", "walk"):
        row = one(told, task=task, controls=design.WIDE, signal=PRIMARY, **WHERE)
        assert row["verdict"] == "can tell"
        assert row["low"] <= row["value"] <= row["high"]
        assert row["units"] == (2 * METHODS if task == design.ALL else METHODS)
        assert one(compared, task=task, controls=design.WITHIN, rival="lr")["verdict"] == "more"
        assert one(compared, task=task, controls=design.WIDE, rival="kl")["verdict"] == "equivalent"
        assert one(compared, task=task, controls=design.WIDE, rival="reward_drop")["verdict"] == "more"
    for unbarred in ({"signal": "kl"}, {"lead": 10}, {"landmarks": "late"}, {"controls": design.SEEDS}):
        place = {"task": design.ALL, "controls": design.WIDE, "signal": PRIMARY} | WHERE | unbarred
        if place["lead"] == 10:
            place["landmarks"] = design.ALL
        assert one(told, **place)["verdict"] in ("", TOO_FEW)


def test_what_knows_the_rate_and_no_more_is_rarely_called_more() -> None:
    """Configurations are mixed and the learning rate ties within them: the case in which a bootstrap of them errs."""
    words = []
    for seed in range(30):
        panel = planted(0.0, np.random.default_rng(seed))
        words.append(one(rivals(panel, (design.WITHIN,)), task=design.ALL, rival="lr")["verdict"])
    assert words.count("more") + words.count("less") <= 4
    assert words.count("equivalent") > 15


def test_an_interval_holds_the_truth() -> None:
    """The area of a signal that knows nothing but the rate, from many studies, against the intervals of some."""
    truth = np.mean([_value(seed)["value"] for seed in range(100, 160)])
    held = [row["low"] <= truth <= row["high"] for row in map(_value, range(60))]
    assert np.mean(held) > 0.85


def _value(seed: int) -> pd.Series:
    panel = planted(0.3, np.random.default_rng(seed))
    return one(telling(panel, (PRIMARY,), (20,)), task="walk", controls=design.WITHIN, landmarks=design.ALL)


def test_few_units_give_no_number() -> None:
    panel = planted(0.8, np.random.default_rng(2), methods=7)
    told, compared = telling(panel, (PRIMARY,), (20,)), rivals(panel)
    assert one(told, task="walk", controls=design.WIDE, landmarks=design.ALL)["verdict"] == TOO_FEW
    assert np.isnan(one(compared, task="walk", controls=design.WITHIN)["value"])
    assert one(told, task=design.ALL, controls=design.WIDE, landmarks=design.ALL)["verdict"] == "can tell"


def test_failures_that_cannot_be_read_are_counted() -> None:
    panel = planted(0.8, np.random.default_rng(3))
    onset = np.where(np.isfinite(panel.onset) & (np.arange(panel.onset.size) % 2 == 0), 20.0, panel.onset)
    early = with_units(Panel(panel.runs, panel.values, onset, onset, panel.end, panel.stride), np.ones(len(panel.runs)))
    row = one(unread(early), task=design.ALL)
    assert row["failed"] == panel.failed.sum()
    assert row["too_early"] == (onset == 20).sum()
    assert row["early"] == ((onset > 20) & (onset <= 40)).sum()


def test_a_borrowed_step_counts_as_learning_rate() -> None:
    panel = planted(0.0, np.random.default_rng(4))
    borrows = (panel.runs["method"] == "m3").to_numpy()
    runs = panel.runs.assign(method=panel.runs["method"].mask(borrows, "vcpo(ess=off)+lr-matched"))
    bare = Panel(runs, panel.values, panel.onset, panel.found, panel.end, panel.stride)
    taken = with_units(bare, np.full(len(runs), 0.5)).values["lr"] - bare.values["lr"]
    np.testing.assert_allclose(taken[borrows], np.log(0.5), atol=1e-5)
    assert not taken[~borrows].any()


def test_a_folder_that_may_hold_other_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists; name a folder that does not"):
        next(unpacked(tmp_path))


def test_equal_learning_rates_tie() -> None:
    """Also where a step scale was taken out of rates that were recorded in single precision."""
    scales = np.random.default_rng(5).uniform(0.1, 1, 1000)
    steps = pd.DataFrame({"lr": (1e-3 * scales).astype(np.float32), "step_scale": scales.astype(np.float32)})
    assert np.unique(all_signals()["lr"].of(steps)).size == 1
    told = telling(planted(0.5, np.random.default_rng(6)), ("lr",), (20,))
    assert one(told, task="walk", controls=design.SEEDS, landmarks=design.ALL)["value"] == 0.5


def test_controls_of_another_seed() -> None:
    panel = planted(0.0, np.random.default_rng(7))
    for place in _places(panel, (20,)):
        if place.controls == design.OTHERS:
            seed = panel.runs["seed"].to_numpy()
            case, control = np.nonzero(place.sets.controls)
            assert (seed[place.sets.case[case]] != seed[control]).all()
            assert case.size
