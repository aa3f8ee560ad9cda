"""What CONTRIBUTING promises: something new is one file and its test, moved where its table says, and nothing else."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NEWCOMERS = Path(__file__).with_name("newcomers")
"""A file of every kind that `vcpo-bench new` does not write, called as its row of the table, and their tests."""
ELSEWHERE = (".git", ".types", ".nox", "build", "dist", "*.egg-info", ".*cache*", "__pycache__")
ROW = re.compile(
    r"^\| an? (?P<kind>[a-z ]+?)(?: whose [a-z ]+| \(.*\))? (?P<written>\* )?(?:\+ )?"
    r"\| `(?P<file>[^`]+)`[^|]* \| (?:`(?P<tests>[^`]+)` )?\|",
    flags=re.MULTILINE,
)
ROWS = list(ROW.finditer((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")))
TESTS = """
tests/test_arrows.py tests/methods tests/adapters tests/records tests/naming tests/docs tests/tools
tests/commands/test_cite.py tests/commands/test_help.py tests/commands/test_ls.py tests/commands/test_new.py
tests/commands/test_show.py tests/commands/test_verbs.py tests/analysis/comparison/test_compare.py
tests/analysis/test_commands.py tests/analysis/monitoring tests/analysis/logs/test_framework_files.py
tests/analysis/prediction/test_signal_values.py tests/reports/test_reading.py tests/reports/test_symbols.py
tests/bench/tasks/test_tasks.py tests/bench/tasks/test_plugin_task.py tests/bench/regimes/test_every_regime.py
tests/bench/regimes/test_plugin_regime.py tests/bench/cells/test_presets.py tests/bench/optimizers
tests/bench/samplers/test_samplers.py tests/bench/outside/test_trackers.py tests/hardening/test_expressions_fuzz.py
"""
"""The tests that list what there is of a kind, of generated pages, and of properties that everything of a kind has."""


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """What stays out of a copy; `results` of the top is the user's, and of `commands` is ours."""
    runs = {"results"} if Path(folder) == REPOSITORY else set()
    return shutil.ignore_patterns(*ELSEWHERE, *runs)(folder, names)


class Copy:
    """A copy of the repository that something new is moved into.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.elsewhere, links = folder / "repository", folder / "new", folder / "links"
        shutil.copytree(REPOSITORY, self.root, ignore=_not_copied)
        links.mkdir()
        (links / "vcpo_bench").symlink_to(self.root)
        self.environment = os.environ | {"PYTHONPATH": str(links), "PYTHONDONTWRITEBYTECODE": "1"}
        self.added: list[str] = []

    def python(self, *arguments: str) -> None:
        """Run Python in it.

        Raises:
            AssertionError: It failed; the text ends with what it printed.
        """
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-8000:]}\n{done.stderr[-4000:]}"

    def add(self, row: re.Match[str]) -> None:
        """Do what a row of the table says: write a file and its test, and move each to its place."""
        kind, name = row["kind"].replace(" ", "_"), "newcomer"
        if row["written"]:
            name = f"my-{kind}"
            self.python("-m", "vcpo_bench", "new", kind, name, "--folder", str(self.elsewhere))
        module = name.replace("-", "_")
        file = row["file"].replace("NAME", module)
        written = self.elsewhere / f"{module}.py"
        shutil.copy(written if row["written"] else NEWCOMERS / f"{kind}{Path(file).suffix}", self.root / file)
        self.added.append(file)
        if row["tests"]:
            own = NEWCOMERS / "tests" / f"{kind}.py"
            own = written.with_name(f"test_{module}.py") if row["written"] else own
            text = (own if own.exists() else NEWCOMERS / "tests" / "of_a_catalog.py").read_text()
            test = f"{row['tests']}test_{module}_{kind}.py" if not row["written"] else f"{row['tests']}test_{module}.py"
            (self.root / test).write_text(text.replace("KIND", kind))
            self.added.append(test)


def test_every_row_of_the_table_is_read() -> None:
    table = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("| to add |")[2].partition("\n\n")[0]
    assert len(ROWS) == len(table.splitlines()) - 2
    assert sum(bool(row["written"]) for row in ROWS) == 4


@pytest.mark.parametrize("path", sorted(NEWCOMERS.glob("*.py")), ids=lambda path: path.stem)
def test_a_newcomer_is_what_the_base_class_of_its_kind_asks_for(path: Path) -> None:
    runpy.run_path(str(path))


@pytest.mark.slow
def test_one_more_of_everything_breaks_no_test_and_needs_no_edit(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    for row in ROWS:
        copy.add(row)
    copy.python("tools/make_docs.py")  # the one command that CONTRIBUTING asks for
    for command in (["check"], ["format", "--check"]):
        copy.python("-m", "ruff", *command, *(file for file in copy.added if file.endswith(".py")))
    # no cache, because the copy is thrown away; it ends after 30 failures, as many as anybody reads at once
    own = {file for file in copy.added if Path(file).name.startswith("test_")}
    own = {file for file in own if not any(file.startswith(f"{each}/") for each in TESTS.split())}
    copy.python("-m", "pytest", *TESTS.split(), *sorted(own), "-p", "no:cacheprovider", "--maxfail=30")
