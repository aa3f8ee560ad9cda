"""`vcpo-bench publish`: a site that grows, and whose page says who ran what."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call

from vcpo_bench.analysis.comparison.leaderboard import read_entry

OURS = Path(__file__).parents[2] / "docs" / "studies" / "leaderboard" / "protocol.json"


@pytest.fixture(scope="module")
def site(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("publish")
    make_results(root / "mine", methods=("vcpo", "tis"), lags=(1, 16), steps=60, seeds=(0, 1))
    first = call("publish", str(OURS), "--out", str(root / "site"))
    assert first.exit_code == 0, first.output
    second = call("publish", str(root / "mine"), "--out", str(root / "site"), "--by", "A. <b>Student</b>")
    assert second.exit_code == 0, second.output
    assert all(Path(line).is_file() for line in second.stdout.splitlines())
    return root / "site"


def test_entries_that_were_there_stay(site: Path) -> None:
    assert sorted(path.name for path in (site / "entries").iterdir()) == [
        "mine.csv",
        "mine.json",
        "protocol.csv",
        "protocol.json",
    ]
    page = (site / "index.html").read_text()
    assert 'href="#study-mine"' in page
    assert "A. &lt;b&gt;Student&lt;/b&gt;" in page
    assert page.count("<h2>Rules 1.0</h2>") == 1
    assert read_entry(site / "entries" / "mine.json").by == "A. <b>Student</b>"


def test_rules_that_do_not_compare_stand_apart(site: Path, tmp_path: Path) -> None:
    newer = json.loads(OURS.read_text()) | {"name": "newer", "rules_version": "2.0"}
    (tmp_path / "newer.json").write_text(json.dumps(newer))
    assert call("publish", str(OURS), str(tmp_path / "newer.json"), "--out", str(tmp_path / "site")).exit_code == 0
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.index("Rules 2.0") < page.index("Rules 1.0")


def test_a_name_that_is_no_file_name_is_refused(site: Path, finished: Path, tmp_path: Path) -> None:
    shown = call("publish", str(finished), "--out", str(tmp_path / "s"), "--name", "../x")
    assert shown.exit_code == 2
    assert "--name" in shown.stderr
    assert not (tmp_path / "s").exists()


def test_the_repositorys_own_entry_is_what_its_tables_say() -> None:
    import runpy

    made = runpy.run_path(str(OURS.parents[3] / "tools" / "make_leaderboard.py"))["texts"]()
    assert made == {OURS.name: OURS.read_text()}
