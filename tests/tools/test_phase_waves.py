"""The second wave of the phase study stands beside the first, judged by the same rules."""

from pathlib import Path

import pandas as pd
import pytest
from phase_study import second
from phase_study.tables import RUNS, boundaries, exponents, shipped
from phase_study.waves import ANSWERS, QUESTIONS, SECOND, SEEDS, agreement, section, table
from phase_world import world


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return world([*range(4), *range(8, 12)])


@pytest.fixture(scope="module")
def answers(runs: pd.DataFrame) -> pd.DataFrame:
    early = runs["seed"] < 8
    return second.answers(runs[early], runs[~early])


def test_each_wave_is_judged_by_itself(answers: pd.DataFrame, runs: pd.DataFrame) -> None:
    late = boundaries(runs).query("seed >= 8")
    alone = exponents(late).query("lag == 'asked'").set_index(["task", "method"])
    own = answers[answers["question"] == "law"].set_index(["task", "method"])
    assert own["second"].to_dict() == alone["exponent"].to_dict()
    assert own["second_word"].to_dict() == alone["verdict"].to_dict()
    whole = exponents(boundaries(runs)).query("lag == 'asked'").set_index(["task", "method"])
    assert own["both_low"].to_dict() == whole["low"].to_dict()
    assert set(answers["question"]) == {*QUESTIONS, "horizon"}


def test_words_that_differ_are_named() -> None:
    rows = [
        {"question": "law", "task": "walk", "method": "tis", "first_word": "holds", "second_word": "refuted"},
        {"question": "law", "task": "walk", "method": "clip", "first_word": "refuted", "second_word": "refuted"},
        {"question": "rate", "task": "walk", "method": "x", "staleness": 4, "first_word": "a", "second_word": "a"},
        {"question": "reward", "task": "walk", "method": "y", "staleness": 16.0, "first_word": "a", "second_word": "b"},
    ]
    lines = agreement(pd.DataFrame(rows)).splitlines()
    law = (
        "- The exponent of the lag: the same word in 1 of 2 places; other words: `tis` on `walk` (holds, then refuted)."
    )
    assert lines[0] == law
    assert lines[1].endswith("the same word in 1 of 1 places.")
    assert lines[2].endswith("other words: `y` on `walk` at lag 16 (a, then b).")


def test_the_section_is_there_once_there_are_answers(answers: pd.DataFrame, tmp_path: Path) -> None:
    assert section(tmp_path / "answers.csv") == ""
    answers.to_csv(tmp_path / "answers.csv", index=False, float_format="%.6g")
    text = section(tmp_path / "answers.csv")
    assert text.startswith("## A second wave of seeds")
    assert len(table(answers).splitlines()) == 2 + len(answers)
    assert "nan" not in text
    assert "no interval" in text, "an exponent of the horizon from four seeds"


def test_only_complete_seeds_of_the_wave_count(
    runs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = runs["seed"] < 8
    cut = runs[~early].drop(runs.index[runs["seed"] == 11][-1])
    for name, part in (("first", runs[early]), ("second", cut)):
        (tmp_path / name).mkdir()
        part.to_csv(tmp_path / name / "runs.csv", index=False, float_format="%.10g")
    monkeypatch.setattr(second, "RUNS", tmp_path / "first" / "runs.csv")
    monkeypatch.setattr(second, "SECOND", tmp_path / "second")
    assert second.ended_seeds() == [8, 9, 10]
    assert set(second.ended_seeds()) <= set(SEEDS)


@pytest.mark.slow
def test_the_shipped_answers_follow_from_the_shipped_runs() -> None:
    first, late = shipped(RUNS), shipped(SECOND / RUNS.name)
    assert second.ended_seeds() == list(SEEDS)
    made = second.answers(first, late)
    known = pd.read_csv(SECOND / ANSWERS, keep_default_na=False, na_values=[""])
    for name in known.columns:
        if name.endswith("_word"):
            assert made[name].fillna("").tolist() == known[name].fillna("").tolist()
        elif known[name].dtype == float:
            assert made[name].astype(float).to_numpy() == pytest.approx(known[name].to_numpy(), abs=1e-4, nan_ok=True)
