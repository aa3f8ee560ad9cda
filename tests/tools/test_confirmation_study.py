"""The confirmation finds what is planted, says what was registered, and asks no other seeds."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from configuration_study.panels import with_units
from configuration_study.tables import unpacked
from confirmation_study import page, wording
from confirmation_study.areas import areas, over_methods
from confirmation_study.design import ASKED, EVERY, FOLDER, MARGIN, NEW, PRIMARY, SECONDARY, SIGHTED
from confirmation_study.judging import TOO_FEW, both, judged, word
from confirmation_study.testing import p_of, powers
from confirmation_study.units import prepared, seeds_of

from vcpo_bench.analysis.prediction.panel import Panel
from vcpo_bench.analysis.results import Results
from vcpo_bench.errors import UsageError

METHODS = ("reinforce", *"bcdefgh")
REGISTERED = " ".join((FOLDER / "registration.md").read_text(encoding="utf-8").split())


def planted(knows: float = 2.0, shift: float = 6.0, seeds: int = 8) -> Panel:
    """Fates depend on the learning rate and on chance; so does ESS, which is low in every run of `reinforce`."""
    random = np.random.default_rng(1)
    place = pd.MultiIndex.from_product(
        [("chain", "walk"), METHODS, range(8), range(seeds)], names=["task", "method", "rung", "seed"]
    )
    runs = place.to_frame(index=False)
    rung, chance = runs["rung"].to_numpy(float), random.normal(size=len(runs))
    failed = rung - 3.5 + 0.8 * chance > 0
    onset = np.where(failed, random.integers(8, 18, len(runs)) * 10.0, np.inf)
    danger = knows * (rung + chance) + random.normal(size=len(runs))
    there = (runs["method"] == "reinforce").to_numpy() & (runs["task"] == "walk").to_numpy()
    ess = (danger - shift * there)[:, None] + np.zeros(200)
    runs = runs.assign(key=[str(n) for n in range(len(runs))], regime="fifo", staleness=16, steps_done=200)
    runs = runs.assign(lr=1e-4 * 2**rung, event=np.where(failed, "collapse", "healthy"), failed=failed)
    rate = np.repeat(rung[:, None], 200, axis=1)
    noise = {name: random.normal(size=(len(runs), 1)) + np.zeros(200) for name in ("reward_low", "reward_drop")}
    values = {"ess": ess, "kl": ess + 1e-9, "lr": rate + 1e-6 * random.normal(size=rate.shape), **noise}
    panel = Panel(runs, values, onset, onset, np.full(len(runs), 200.0), 10)
    return prepared(with_units(panel, np.ones(len(runs))))


@pytest.fixture(scope="module")
def blind() -> Panel:
    return planted()


def test_what_is_planted_is_confirmed(blind: Panel) -> None:
    found = judged(blind).set_index("statement")
    assert list(found.index) == [one.name for one in EVERY]
    for name in (PRIMARY.name, "KL blind too", SIGHTED, "tells within a method", "KL over methods"):
        assert found.loc[name, "word"] == "confirmed", name
    assert found.loc[PRIMARY.name, "p"] == found.loc[PRIMARY.name, "p_holm"], "the primary one is not adjusted"
    assert (found["p_holm"].iloc[1:] >= found["p"].iloc[1:]).all()
    assert found.loc["KL over methods", "value"] == pytest.approx(0, abs=1e-6)
    assert (found["readable"] == found["failed"]).all()
    assert "A threshold on ESS belongs to a method" in wording.meaning(found.reset_index())


def test_the_opposite_is_contradicted(blind: Panel) -> None:
    """Where ESS is high instead, REINFORCE's failures stand out among runs of any method."""
    turned = judged(planted(shift=-6.0)).set_index("statement")
    assert turned.loc[PRIMARY.name, "word"] == "contradicted"
    assert "nothing follows" in wording.meaning(turned.reset_index())
    assert word({"value": 0.2, "low": 0.1, "high": 0.3, "kind": "equivalent", "p_holm": 1.0}) == "contradicted"
    assert word({"value": 0.04, "low": 0.0, "high": 0.08, "kind": "equivalent", "p_holm": 0.3}) == "not confirmed"


def test_signals_without_knowledge_confirm_nothing() -> None:
    found = judged(planted(knows=0.0, shift=0.0)).set_index("statement")
    said = [name for name in found.index if found.loc[name, "word"] == "confirmed"]
    assert set(said) <= {"KL over methods", "learning rate within a method"}


def test_with_few_seeds_nothing_is_said_and_the_family_stays_nine(blind: Panel) -> None:
    few = judged(planted(seeds=5))
    assert (few["word"] == TOO_FEW).all()
    line = wording.answer(few).splitlines()[0]
    assert line.startswith("- Primary: **too few**: among runs of any method")
    statements = [replace(one, area=replace(one.area, signal="lr")) if one.name == SIGHTED else one for one in EVERY]
    known = judged(blind, statements)
    lost = replace(blind, values={**blind.values, "reward_low": np.full_like(blind.values["ess"], np.nan)})
    found = judged(lost, statements)
    row = found.set_index("statement").loc["reward sees there"]
    assert row["word"] == TOO_FEW
    assert row["failed"] == 0
    assert row["readable"] > 0
    least = known["p"].iloc[1:].min()
    assert found["p_holm"].iloc[1:].min() == pytest.approx(9 * least), "what has too few counts as p = 1"


def test_two_signals_are_compared_where_both_say_something(blind: Panel) -> None:
    statement = next(one for one in SECONDARY if one.name == "reward sees there")
    first, _ = both(blind, statement)
    low = blind.values["reward_low"].copy()
    low[first.case[0]] = np.nan
    one, two = both(replace(blind, values={**blind.values, "reward_low": low}), statement)
    assert two is not None
    assert np.array_equal(one.case, two.case)
    assert one.case.size == first.case.size - 1


def test_numbers_beside_the_statements(blind: Panel) -> None:
    every, methods = areas(blind), over_methods(blind)
    own = every[(every["failures"] == "walk, reinforce") & (every["controls"] == "any method")]
    assert set(own["signal"]) == {"ess", "kl", "reward_low"}
    assert own[["methods_low", "methods_high"]].isna().all().all(), "one method says nothing about others"
    assert every[every["failures"] == "all"][["methods_low", "methods_high"]].notna().all().all()
    assert methods["statement"].iloc[-1] == "learning rate within a method, controls of other seeds"
    assert len(methods) == 5
    assert (methods["low"] <= methods["value"]).all()


def test_equal_learning_rates_tie(blind: Panel) -> None:
    assert len(np.unique(blind.values["lr"])) == 8
    assert seeds_of(blind).max() == 7


@pytest.mark.parametrize(
    ("value", "kind", "p"),
    [(0.1, "less", 0.0), (0.0, "more", 1.0), (0.01, "equivalent", 0.0), (MARGIN, "equivalent", 1.0)],
)
def test_without_any_spread_there_is_no_doubt(value: float, kind: str, p: float) -> None:
    assert p_of(value, 0.0, 8, kind) == p


def test_power_is_what_a_simulation_gives() -> None:
    random, seeds = np.random.default_rng(0), 8
    rows = [{"statement": f"s{n}", "value": value, "se": 0.02, "seeds": seeds} for n, value in enumerate((0.05, 0.01))]
    known = pd.DataFrame([row | {"kind": kind} for row, kind in zip(rows, ("more", "equivalent"), strict=True)])
    for row, power in zip(known.to_dict("records"), powers(known, seeds)["power"], strict=True):
        drawn = row["value"] + row["se"] * math.sqrt(seeds) * random.normal(size=(4000, seeds))
        mean, se = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / math.sqrt(seeds)
        share = np.mean([p_of(m, s, seeds, row["kind"]) < 0.05 for m, s in zip(mean, se, strict=True)])
        assert share == pytest.approx(power, abs=0.06)


def test_the_registered_power_is_that_of_the_known_seeds() -> None:
    known, power = (pd.read_csv(FOLDER / f"{name}.csv") for name in ("known", "power"))
    assert list(known["statement"]) == list(power["statement"]) == [one.name for one in EVERY]
    again = powers(known, len(ASKED))
    assert np.allclose(again["power_first"], power["power_first"], atol=1e-4)
    least = power.set_index("statement")[["power_first", "power_first_without_0"]]
    weak = {"reward sees there": "2", "fall of the reward over methods": "9", "learning rate within a method": "6"}
    for name, number in weak.items():
        low, high = least.loc[name].min(), least.loc[name].max()
        assert f"{low:.2f} to {high:.2f} for statement {number}" in REGISTERED
    assert (least.drop(index=list(weak)) > 0.99).all().all()


def test_every_statement_is_in_the_registration() -> None:
    assert len(SECONDARY) == 9
    for phrase in (
        "Holm's adjustment over all nine",
        "fewer than 15 failed runs",
        "fewer than 6 seeds",
        "10,000 times",
    ):
        assert phrase in REGISTERED
    assert "margin 0.05" in REGISTERED


def test_other_seeds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = pd.DataFrame({"key": ["a"], "seed": [3]})
    results = Results([tmp_path], cells, [], [])
    monkeypatch.setattr(page, "ended_seeds", lambda: list(ASKED))
    with pytest.raises(UsageError, match="asked once, of the complete seeds 8 to 15"):
        page.new_tables(results)
    monkeypatch.setattr(page, "ended_seeds", lambda: [8, 9])
    every = Results([tmp_path], pd.DataFrame({"key": list("abcdefgh"), "seed": list(ASKED)}), [], [])
    with pytest.raises(UsageError, match="and no others"):
        page.new_tables(every)


def test_the_page_has_a_line_for_every_statement(blind: Panel, tmp_path: Path) -> None:
    known = pd.read_csv(FOLDER / "known.csv")
    tables = {"answers": judged(blind), "areas": areas(blind), "methods": over_methods(blind), "known": known}
    tables["power"] = pd.read_csv(FOLDER / "power.csv")
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    text = page.page(tmp_path)
    assert all(one.text in text for one in EVERY)
    assert text.count("adjusted p ") == 9
    assert "- Primary: **confirmed**: among runs of any method" in text


@pytest.mark.slow
def test_the_shipped_answers_follow_from_the_archives(tmp_path: Path) -> None:
    made = page.new_tables(dict(unpacked(tmp_path / "runs", [NEW]))[NEW])
    for name, table in made.items():
        known = pd.read_csv(FOLDER / f"{name}.csv")
        assert list(table) == list(known)
        for column in known.columns:
            if known[column].dtype == float:
                assert table[column].to_numpy(float) == pytest.approx(known[column].to_numpy(), rel=1e-4, nan_ok=True)
            else:
                assert table[column].tolist() == known[column].tolist()
