"""The repository's own studies on its leaderboard: the shipped entries are what the shipped tables say."""

import re
import runpy
from pathlib import Path

import pandas as pd
import pytest
from short_studies.catalog import all_studies

from vcpo_bench.analysis.comparison.leaderboard import Entry, read_entry
from vcpo_bench.reports.writers.leaderboard import ENTRIES, boards, write_site

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "studies" / "leaderboard"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Entry]:
    return {path.stem: read_entry(path) for path in sorted(FOLDER.glob("*.json"))}


def test_the_entries_are_current() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "make_leaderboard.py"))["texts"]()
    assert made == {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}, (
        "run: python tools/make_leaderboard.py"
    )


def test_every_row_of_every_study_is_on_one_board(shipped: dict[str, Entry], tmp_path: Path) -> None:
    short = {name for name, study in all_studies().items() if (study.folder / "runs.csv").exists()} - {"cold-start"}
    assert short >= {"cures", "every-method", "sixteen-seeds", "step-rules"}
    third = {"third-task"} if (ROOT / "docs" / "studies" / "third-task" / "README.md").exists() else set()
    assert set(shipped) == {"moe", "phase", "protocol", "scorecard", "tinker", "tool-use", *short, *third}
    write_site(tmp_path, list(shipped.values()))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(re.findall("<tbody>", page)) == len(boards(list(shipped.values())))
    for name, entry in shipped.items():
        assert page.count(f'<td><a href="#study-{name}">') == len(entry.rows)
        assert (tmp_path / ENTRIES / f"{name}.csv").read_text().count("\n") == len(entry.rows) + 1


def test_equal_cells_of_two_studies_stand_side_by_side_and_agree(shipped: dict[str, Entry]) -> None:
    (short,) = [one for one in boards(list(shipped.values())) if "80 updates" in one.settings]
    assert {row["study"] for row in short.rows} == {"cures", "step-rules"}
    same = ("walk", "fifo", "16", "2e-4", "tis")
    found = [
        row for row in short.rows if tuple(row[name] for name in ("task", "regime", "lag", "lr", "method")) == same
    ]
    assert len(found) == 2
    assert len({row["score"] for row in found}) == 2, "one has five seeds, the other sixteen"
    place = ["task", "regime", "staleness", "lr", "method", "seed"]
    runs = [pd.read_csv(ROOT / "docs" / "studies" / name / "runs.csv") for name in ("cures", "step-rules")]
    both = pd.merge(*runs, on=place)
    assert len(both) == 10
    assert both["final_reward_x"].tolist() == pytest.approx(both["final_reward_y"].tolist(), abs=1e-6)


def test_scores_are_those_of_the_studys_own_table(shipped: dict[str, Entry]) -> None:
    table = pd.read_csv(ROOT / "docs" / "studies" / "step-rules" / "rates.csv")
    own = {(row["task"], row["method"], row["lr"]): row["score"] for row in shipped["step-rules"].rows}
    told = {(row["task"], row["rule"], row["rate"]): row["reward"] for row in table.to_dict("records")}
    assert own == pytest.approx(told, abs=1e-5)
    assert {entry.last_evaluations for entry in shipped.values()} == {2, 3}


def test_every_run_of_the_phase_study_counts_in_its_row(shipped: dict[str, Entry]) -> None:
    folder = ROOT / "docs" / "studies" / "phase"
    runs = pd.concat([pd.read_csv(path) for path in (folder / "runs.csv", folder / "second" / "runs.csv")])
    place = ["task", "method", "staleness", "lr"]
    wanted = runs.groupby(place).agg(seeds=("seed", "size"), failed=("failed", "sum"), score=("final_reward", "mean"))
    rows = {(one["task"], one["method"], one["lag"], one["lr"]): one for one in shipped["phase"].rows}
    assert set(rows) == set(wanted.index)
    for name in ("seeds", "failed", "score"):
        assert [rows[key][name] for key in wanted.index] == pytest.approx(wanted[name].tolist(), abs=1e-6), name


def test_scores_of_the_tinker_study_leave_the_start_policy_out(shipped: dict[str, Entry]) -> None:
    evals = pd.read_csv(ROOT / "docs" / "studies" / "tinker" / "evals.csv")
    trained = evals[evals["step"] > 0]["sampled_reward"].mean()
    rows = shipped["tinker"].rows
    assert sum(row["score"] * row["seeds"] for row in rows) / 12 == pytest.approx(trained, abs=1e-6)
    assert all(row["settings"]["learner"] == "tinker(rank=8)" for row in rows)


def test_the_page_names_every_study_that_is_no_entry(shipped: dict[str, Entry]) -> None:
    left_out = (
        (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8").split("## Studies that are not entries")[1]
    )
    named = set(re.findall(r"\]\(studies/([a-z-]+)/", left_out))
    finished = {path.parent.name for path in (ROOT / "docs" / "studies").glob("*/README.md")}
    assert named == finished - set(shipped)
