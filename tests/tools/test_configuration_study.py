"""The study of configurations finds what is planted, words it as registered, and its page follows from what ships."""

from pathlib import Path

import numpy as np
import pandas as pd
from configuration_study import design, page
from configuration_study.areas import rivals, telling
from configuration_study.detectors import detector_table
from configuration_study.tables import TABLES, fate_table
from configuration_study.wording import parts
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.judge import ANY
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Panel
from vcpo_bench.analysis.results import load

METHODS, RATES, SEEDS, UPDATES = 12, 4, 4, 200


def planted(knows: float, rng: np.random.Generator, configurations: bool = True) -> Panel:
    """Two tasks; the two larger rates of every method fail, and ESS knows so to some degree; the KL is ESS again."""
    grid = [
        (task, f"m{method}", 1e-4 * 2**rate, seed)
        for task in ("chain", "walk")
        for method in range(METHODS if configurations else 2)
        for rate in range(RATES)
        for seed in range(SEEDS)
    ]
    runs = pd.DataFrame(grid, columns=["task", "method", "lr", "seed"])
    failed = (runs["lr"] > 2.5e-4).to_numpy()
    onset = np.where(failed, rng.integers(8, 18, len(runs)) * 10.0, np.inf)
    level = rng.normal(size=len(runs)) + knows * failed
    ess = level[:, None] + 0.1 * rng.normal(size=(len(runs), UPDATES))
    rate = np.repeat(np.log(runs["lr"].to_numpy())[:, None], UPDATES, axis=1)
    noise = rng.normal(size=(len(runs), UPDATES))
    runs = runs.assign(key=[str(n) for n in range(len(runs))], regime="fifo", staleness=16, steps_done=UPDATES)
    runs = runs.assign(event=np.where(failed, "collapse", "healthy"), failed=failed)
    values = {"ess": ess, "kl": ess + 1e-9 * noise, "reward_low": noise, "lr": rate}
    return Panel(runs, values, onset, onset, np.full(len(runs), float(UPDATES)), 10)


def test_what_is_planted_is_found() -> None:
    panel = planted(2.5, np.random.default_rng(0))
    told = telling(panel).set_index(["task", "controls", "signal", "lead"])
    for task in (design.ALL, "chain", "walk"):
        row = told.loc[(task, design.WIDE, "ess", 20)]
        assert row["verdict"] == "can tell"
        assert row["low"] <= row["value"] <= row["high"]
        assert told.loc[(task, design.SEEDS, "ess", 20), "verdict"] == TOO_FEW, "no configuration is mixed"
    against_healthy = 0.961  # of two normal laws 2.5 apart; some controls fail later themselves
    assert 0.8 < told.loc[(design.ALL, design.WIDE, "ess", 20), "value"] < against_healthy
    assert told.loc[(design.ALL, design.WIDE, "kl", 20), "verdict"] == "", "only ESS has a bar"
    assert told.loc[(design.ALL, design.WIDE, "ess", 10), "verdict"] == "", "and at one lead"
    compared = rivals(panel).set_index(["task", "controls", "rival"])
    assert compared.loc[(design.ALL, design.WIDE, "kl"), "verdict"] == "equivalent"
    assert compared.loc[(design.ALL, design.WIDE, "reward_low"), "verdict"] == "more"
    assert compared.loc[(design.ALL, design.WITHIN, "lr"), "verdict"] in ("less", "equivalent", "undecided")
    assert compared.loc[(design.ALL, design.WITHIN, "lr"), "its"] > 0.8


def test_what_knows_nothing_is_not_said_to_tell() -> None:
    panel = planted(0.0, np.random.default_rng(1))
    told = telling(panel).set_index(["task", "controls", "signal", "lead"])
    assert told.loc[(design.ALL, design.WIDE, "ess", 20), "verdict"] in ("cannot", "undecided")
    compared = rivals(panel).set_index(["task", "controls", "rival"])
    assert compared.loc[(design.ALL, design.WITHIN, "lr"), "verdict"] == "less"


def test_few_configurations_give_no_number() -> None:
    panel = planted(2.0, np.random.default_rng(2), configurations=False)
    told, compared = telling(panel), rivals(panel)
    own = told[(told["task"] == "chain") & (told["signal"] == "ess")]
    assert set(own["verdict"]) == {TOO_FEW}
    assert own["value"].isna().all()
    assert set(compared.loc[compared["task"] == "chain", "verdict"]) == {TOO_FEW}


def test_alarms_and_fates_of_shipped_runs(tmp_path: Path) -> None:
    """What ships is what the archives of one study give."""
    unpack_folder(design.STUDIES / "cold-start" / "updates", tmp_path)
    results = load(tmp_path)
    results = results.select(results.cells.loc[results.cells["staleness"] >= design.LEAST_LAG, "key"])
    for name, made in (
        ("detectors", detector_table("cold-start", results)),
        ("fates", fate_table("cold-start", results)),
    ):
        ships = pd.read_csv(design.FOLDER / f"{name}.csv")
        own = ships[ships["study"] == "cold-start"].reset_index(drop=True)
        pd.testing.assert_frame_equal(
            made.reset_index(drop=True).replace("", np.nan), own, check_dtype=False, rtol=1e-5
        )


def test_the_page_follows_from_what_ships(tmp_path: Path) -> None:
    for name in TABLES:
        (tmp_path / f"{name}.csv").write_bytes((design.FOLDER / f"{name}.csv").read_bytes())
    page.refresh(tmp_path)
    assert (tmp_path / "README.md").read_text() == (design.FOLDER / "README.md").read_text()


def test_the_answer_has_the_verdict_of_every_task() -> None:
    tables = {name: pd.read_csv(design.FOLDER / f"{name}.csv") for name in TABLES}
    answer = str(parts(tables)["answer"])
    for name, table in tables.items():
        if name == "detectors":
            own = table[(table["signal"] == ANY) & (table["task"] == design.ALL)]
            assert all(f"{row['study']} " in answer and f"({row['verdict']})" in answer for _, row in own.iterrows())
    told = tables["telling"].query("signal == 'ess' and lead == 20 and controls in @design.CONTROLS")
    barred = told[told["controls"] != design.SEEDS]
    assert (barred["verdict"] != "").all()
    assert all(f"({verdict})" in answer for verdict in barred.loc[barred["task"] != design.ALL, "verdict"])
