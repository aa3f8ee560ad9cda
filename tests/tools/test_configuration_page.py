"""The page of the study of configurations says what its tables say, in every case that they can have."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from configuration_study import design, page
from configuration_study.blind import blindest, by_method
from configuration_study.detectors import detector_table, untuned
from configuration_study.tables import TABLES, fate_table, noted
from configuration_study.wording import _differ, _each, at, conclusion, parts
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.judge import ANY
from vcpo_bench.analysis.monitoring.calibration import DEFAULTS, load_calibrations
from vcpo_bench.analysis.prediction.panel import TOO_FEW
from vcpo_bench.analysis.results import Results, load

SHIPPED = {name: design.FOLDER / f"{name}.csv" for name in TABLES}


@pytest.fixture(scope="module")
def cures(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("cures")
    unpack_folder(design.STUDIES / "cures" / "updates", folder)
    return load(folder)


def test_alarms_and_fates_are_those_of_the_archives(cures: Results) -> None:
    lags = cures.select(cures.cells.loc[cures.cells["staleness"] >= design.LEAST_LAG, "key"])
    for name, made in (("detectors", detector_table("cures", cures)), ("fates", fate_table("cures", lags))):
        ships = pd.read_csv(SHIPPED[name])
        own = ships[ships["study"] == "cures"].reset_index(drop=True)
        pd.testing.assert_frame_equal(made.replace("", np.nan), own, check_dtype=False, rtol=1e-5)


def test_no_configuration_that_tuned_is_judged(cures: Results) -> None:
    tuned = pd.read_csv(design.TUNED).iloc[0]
    place = {"task": tuned["task"], "method": tuned["method"], "staleness": tuned["staleness"], "lr": tuned["lr"]}
    one = cures.cells.head(1).assign(**place)
    for regime, left in (("fifo", 0), ("fifo(top_p=0.8)", 1)):
        assert len(untuned(Results(cures.folders, one.assign(regime=regime))).cells) == left


def test_rates_that_rest_on_too_little_are_not_given() -> None:
    table = pd.read_csv(SHIPPED["detectors"])
    few = (table["n_healthy"] < 15) | (table["configurations"] < 8)
    assert table.loc[few, ["false_per_1000", "healthy_alarmed"]].isna().all(axis=None)
    assert table.loc[table["n_collapsed"] < 15, "recall"].isna().all()
    own = at(table, signal=ANY, task=design.ALL)
    assert set(own["study"]) == set(design.READ)
    for row in own.to_dict("records"):
        low, high = row["false_per_1000_low"], row["false_per_1000_high"]
        word = "kept" if high < 2.2 else "broken" if low > 2.2 else TOO_FEW if np.isnan(low) else "undecided"
        assert row["verdict"] == word


@pytest.mark.parametrize(
    ("phase", "fixed", "said"),
    [
        ("more", "more", "knows more than the learning rate does"),
        ("more", "undecided", "no answer"),
        ("more", TOO_FEW, "no answer"),
        ("more", "less", "no answer"),
        ("less", "more", "ranks runs better"),
        ("equivalent", "more", "ranks runs as well"),
        ("undecided", "more", "not shown to rank runs better"),
        (TOO_FEW, "more", "Nothing can be said"),
    ],
)
def test_the_conclusion_claims_no_more_than_its_words(phase: str, fixed: str, said: str) -> None:
    assert said in conclusion(phase, fixed)


@pytest.mark.parametrize(
    ("whole", "chain", "walk", "differ"),
    [
        ("can tell", "can tell", "can tell", False),
        ("can tell", "undecided", "undecided", False),
        ("can tell", TOO_FEW, "can tell", False),
        (TOO_FEW, TOO_FEW, TOO_FEW, False),
        ("undecided", "can tell", "cannot", True),
        ("can tell", "can tell", "undecided", True),
    ],
)
def test_tasks_differ_where_their_words_do(whole: str, chain: str, walk: str, differ: bool) -> None:
    words = pd.Series({design.ALL: whole, "chain": chain, "walk": walk})
    assert bool(_differ(words)) == differ


def test_a_task_without_a_number_has_its_word_alone() -> None:
    own = pd.DataFrame({"value": [0.5, np.nan], "low": [0.4, np.nan], "high": [0.6, np.nan]}, index=["all", "walk"])
    assert _each(own.assign(verdict=["undecided", TOO_FEW])) == f"`walk` {TOO_FEW}"


def test_the_page_follows_from_what_ships(tmp_path: Path) -> None:
    for name, path in SHIPPED.items():
        (tmp_path / f"{name}.csv").write_bytes(path.read_bytes())
    (tmp_path / "tables").mkdir()
    (tmp_path / page.PLACEMENTS).write_bytes((design.FOLDER / page.PLACEMENTS).read_bytes())
    page.refresh(tmp_path)
    assert (tmp_path / "README.md").read_text() == (design.FOLDER / "README.md").read_text()


def test_every_line_of_the_answer_has_the_words_of_its_tasks() -> None:
    tables = {name: pd.read_csv(path) for name, path in SHIPPED.items()}
    lines = str(parts(tables)["answer"]).splitlines()
    pairs = at(tables["rivals"], study=design.MAIN, controls=design.WITHIN, rival="lr").set_index("task")
    assert f"{pairs.loc[design.ALL, 'verdict']}.**" in lines[0]
    told = at(tables["telling"], study=design.MAIN, lead=20, landmarks=design.ALL, signal="ess")
    for line, controls in ((lines[1], design.WITHIN), (lines[2], design.WIDE)):
        own = at(told, controls=controls)
        assert own["verdict"].notna().all()
        for row in own.to_dict("records"):
            assert f"{row['value']:.2f} [" in line or row["verdict"] == TOO_FEW
            assert row["verdict"] in line
    assert "nan" not in "\n".join(lines)


def test_the_packaged_detectors_say_what_they_did_elsewhere() -> None:
    document = DEFAULTS.read_text(encoding="utf-8")
    assert noted(document, pd.read_csv(SHIPPED["detectors"])) == document, (
        "run: python tools/configuration_study/page.py"
    )
    for one in load_calibrations():
        assert one.union is not None
        assert one.union.elsewhere is not None
        assert f", {one.union.elsewhere.words}; not known here" in one.words


def test_where_a_signal_is_blind() -> None:
    placed = {f"above_{name}": [0.9, 0.7, 0.2, 0.4] for name in ("kl", "reward_low", "lr")}
    runs = pd.DataFrame({"task": "walk", "method": ["tis", "tis", "clip", "clip"], "above_ess": [0.9, 0.7, 0.2, 0.6]})
    table = by_method(runs.assign(**placed)).set_index("method")
    assert list(table.loc["clip", ["failed", "ess", "wrong_side"]]) == [2, 0.4, 1]
    many = pd.concat([runs.assign(**placed)] * 4)
    said = blindest(by_method(many))
    assert "for `clip` on `walk`**: AUROC 0.40 over 8 failed runs, 4 of which lie below half" in said
    assert "There the KL has 0.30, a low training reward has 0.30 and the learning rate has 0.30." in said
    assert "Of the other 1 methods and tasks with at least 8 failures ESS has 0.80 to 0.80." in said
