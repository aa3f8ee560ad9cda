"""The page of realized lags is current, and its rows are what was recorded."""

from pathlib import Path

import pandas as pd
from lag_tables import lags, page
from run_archives.pack import pack_folder

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.reports.terminal.live import QuietView


def test_page_and_table_are_current() -> None:
    found = lags.table(page.STUDIES)
    assert found.to_csv(index=False, float_format="%.6g") == page.TABLE.read_text(), f"run: {page.TOOL}"
    assert page.made(found) == page.PAGE.read_text(encoding="utf-8"), f"run: {page.TOOL}"


def test_lags_of_archived_runs_and_early_failures(tmp_path: Path) -> None:
    settings = CellSettings(steps=6, prompts=2, responses=2, eval_every=3)
    grid = GridSpec(("tis",), (3,), (0, 1), ("walk",), (1e-4,), ("random",), settings=settings, controls=False)
    assert not run_grid(list(plan_grid(grid)), RunOptions(tmp_path / "results", 1), QuietView())
    studies = tmp_path / "studies"
    pack_folder(tmp_path / "results", studies / "tiny" / "updates")
    facts = {"task": "walk", "method": "tis", "staleness": 3, "lr": 1e-4}
    rows = [facts | {"seed": seed, "failed": seed < 2, "onset": [2.0, 3.0, None][seed]} for seed in range(3)]
    pd.DataFrame(rows).to_csv(studies / "tiny" / "runs.csv", index=False)
    row = lags.table(studies).iloc[0]
    assert (row["study"], row["asked"], row["archived"]) == ("tiny", 3, 2)
    assert 0 <= row["lowest"] <= row["mean"] <= row["highest"] <= 3
    assert row["lowest"] < row["highest"], "a random lag varies"
    assert (row["runs"], row["failed"], row["early"]) == (3, 2, 1), "an onset at update 3 is at lag 3"
    assert row["perhaps"] == 1, "evaluated every 3 updates: last seen up at update 0"
    assert "by study: 1 (+1) of 2 (tiny)." in page.answer(lags.table(studies))
