"""`vcpo-bench results publish`: a site that grows, and whose page says who ran what."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call, refused

from vcpo_bench.analysis.comparison.leaderboard import read_entry

SHIPPED = Path(__file__).parents[2] / "docs" / "studies" / "leaderboard" / "default-run.json"
BOTH = [f"Rules 2.0: {steps} updates of 16 prompts x 8 responses" for steps in (40, 80)]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped entry, as if it were of older rules."""
    path = tmp_path_factory.mktemp("older") / "older.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text()) | {"name": "older", "rules_version": "1.0"}))
    return path


@pytest.fixture(scope="module")
def site(make_results: Callable[..., Path], older: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("publish")
    make_results(root / "mine", methods=("vcpo", "tis"), lags=(1, 16), steps=60, seeds=(0, 1))
    first = call("results", "publish", str(older), "--out", str(root / "site"))
    assert first.exit_code == 0, first.output
    second = call("results", "publish", str(root / "mine"), "--out", str(root / "site"), "--by", "A. <b>Student</b>")
    assert second.exit_code == 0, second.output
    assert all(Path(line).is_file() for line in second.stdout.splitlines())
    return root / "site"


def test_entries_that_were_there_stay(site: Path) -> None:
    assert sorted(path.name for path in (site / "entries").iterdir()) == [
        "mine.csv",
        "mine.json",
        "older.csv",
        "older.json",
    ]
    page = (site / "index.html").read_text()
    assert 'href="#study-mine"' in page
    assert "A. &lt;b&gt;Student&lt;/b&gt;" in page
    assert page.count("<h2>Rules 1.0: 300 updates of 16 prompts x 8 responses</h2>") == 1
    assert read_entry(site / "entries" / "mine.json").by == "A. <b>Student</b>"


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(Rules .*?)</h2>", page)


def test_rules_that_do_not_compare_stand_apart_the_newest_first(older: Path, tmp_path: Path) -> None:
    files = []
    for version in ("10.0", "2.0"):
        newer = json.loads(older.read_text()) | {"name": f"v{version}", "rules_version": version}
        files.append(tmp_path / f"v{version}.json")
        files[-1].write_text(json.dumps(newer))
    assert call("results", "publish", str(older), *map(str, files), "--out", str(tmp_path / "site")).exit_code == 0
    found = [heading.split(":")[0] for heading in headings((tmp_path / "site" / "index.html").read_text())]
    assert found == ["Rules 10.0", "Rules 2.0", "Rules 1.0"]


@pytest.fixture(scope="module")
def short_and_long(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("lengths")
    made = [make_results(root / f"of{steps}", ("vcpo",), (16,), (0, 1), steps, controls=False) for steps in (40, 80)]
    return made[0], made[1]


def test_runs_of_other_lengths_share_no_board_published_one_after_another(
    short_and_long: tuple[Path, Path], tmp_path: Path
) -> None:
    for folder in short_and_long:
        assert call("results", "publish", str(folder), "--out", str(tmp_path / "site")).exit_code == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert headings(page) == BOTH
    boards = page.split('<section class="board"')[1:]
    assert ["#study-of40" in boards[0], "#study-of80" in boards[0]] == [True, False]
    assert ["#study-of40" in boards[1], "#study-of80" in boards[1]] == [False, True]


def test_nor_published_together_and_the_task_keeps_its_name(short_and_long: tuple[Path, Path], tmp_path: Path) -> None:
    assert call("results", "publish", *map(str, short_and_long), "--out", str(tmp_path / "site")).exit_code == 0
    assert headings((tmp_path / "site" / "index.html").read_text()) == BOTH
    rows = read_entry(tmp_path / "site" / "entries" / "of40.json").rows
    assert [(row["task"], row["settings"]["steps"], row["seeds"]) for row in rows] == [
        ("chain", 40, 2),
        ("chain", 80, 2),
    ]
    assert "40 updates of 16 prompts" in (tmp_path / "site" / "entries" / "of40.csv").read_text()


def test_an_entry_of_the_form_before_is_refused_until_it_is_published_again(
    short_and_long: tuple[Path, Path], older: Path, tmp_path: Path
) -> None:
    old = tmp_path / "site" / "entries" / "of40.json"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"schema": 1, "name": "of40"}))
    refused = call("results", "publish", str(older), "--out", str(tmp_path / "site"))
    assert refused.exit_code != 0
    assert "its schema is 1" in refused.stderr
    assert "write it again with vcpo-bench results publish" in refused.stderr
    assert call("results", "publish", str(short_and_long[0]), "--out", str(tmp_path / "site")).exit_code == 0


def test_a_name_that_is_no_file_name_is_refused(site: Path, finished: Path, tmp_path: Path) -> None:
    assert "--name" in refused("results", "publish", str(finished), "--out", str(tmp_path / "s"), "--name", "../x")
    assert not (tmp_path / "s").exists()
