"""What CONTRIBUTING promises: something new is one file in its folder, and every generic test still holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ELSEWHERE = (".git", ".types", ".nox", "build", "dist", "results", "*.egg-info", ".*cache*", "__pycache__")

WRITTEN = {
    "method": ("dropped-method", "methods"),
    "task": ("dropped-task", "bench/tasks"),
    "regime": ("dropped-regime", "bench/regimes"),
    "signal": ("dropped_signal", "analysis/monitoring/signals"),
}
"""What `vcpo-bench new` writes: the kind, a name, and the folder that its file is moved into."""

ANALYSIS = '''"""`analyze dropped`: which runs are longest."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.results import Results


@dataclass(frozen=True, kw_only=True)
class Dropped(Analysis):
    """`vcpo-bench analyze dropped`."""

    name = "dropped"
    summary = "Which runs are longest"

    def run(self, results: Results) -> Findings:
        """Table `runs`."""
        return Findings({"runs": results.cells[["key", "steps_done"]]}, {"runs": own_key})
'''
PART = '''"""Half of the reward minus its group's mean."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from vcpo_bench.methods.core.group_statistics import group_mean
from vcpo_bench.methods.core.interfaces import Baseline
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True, kw_only=True)
class Half(Baseline):
    """A = (R - mean_G R) / 2."""

    name: ClassVar[str] = "dropped-half"
    summary: ClassVar[str] = "half of the reward minus its group's mean"
    reference: ClassVar[str] = "unpublished"
    formula: ClassVar[str] = "A = (R - mean_G R) / 2"

    def advantage(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G]`."""
        return (ev.reward - group_mean(ev, ev.reward)) / 2
'''
COLUMN = '''"""How many trajectories an update consumed."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Diagnostic, Value
from vcpo_bench.records.step_facts import StepFacts


class Trajectories(Diagnostic):
    """Rows of the batch."""

    name = "trajectories"
    unit = "count"
    meaning = "trajectories of the batch"

    def compute(self, facts: StepFacts) -> Value:
        """How many."""
        return float(len(facts.mask))


COLUMNS = (Trajectories(),)
'''
SAMPLER = '''"""My sampler: as torch does it."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.samplers.torch_sampler import TorchSampler


@dataclass(frozen=True, kw_only=True)
class MySampler(TorchSampler):
    """Samples as its parent does."""

    name = "dropped"
    summary = "as torch"
'''
SECTION = '''"""How many cells there are."""

from __future__ import annotations

from vcpo_bench.reports.document import Block, Entry, Table
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.study import Study

PLACE = Place("Number of cells", 155)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One table."""
    return [Table("counts", "Cells.", ["cells"], [[Entry(str(len(study.cells)))]], frozenset())]
'''
COMMAND = '''"""`vcpo-bench hello`: a greeting."""

from __future__ import annotations

from vcpo_bench.commands.support.verb import Group, Verb


def hello() -> None:
    """Print nothing."""


VERB = Verb(hello, Group.EXTEND, 9, examples=("vcpo-bench hello",))
'''
OTHERS = {
    "analysis/commands/dropped.py": ANALYSIS,
    "methods/parts/dropped_half.py": PART,
    "records/steps/trajectories.py": COLUMN,
    "bench/samplers/dropped_sampler.py": SAMPLER,
    "reports/sections/dropped.py": SECTION,
    "commands/hello.py": COMMAND,
    "configs/mine.yaml": "# One method.\nmethods: vcpo\n",
}
TESTS = """
tests/test_arrows.py tests/methods/test_describe.py tests/methods/test_registry.py tests/methods/test_properties.py
tests/records tests/tools/test_columns_page.py tests/reports/test_order.py tests/analysis/test_commands.py
tests/analysis/monitoring/test_signals.py tests/commands/test_ls.py tests/commands/test_verbs.py
tests/commands/test_help.py tests/commands/test_cite.py tests/bench/tasks/test_tasks.py
tests/bench/regimes/test_every_regime.py
"""
"""The generic tests: of lists, of generated pages, and of properties that everything of a kind has."""


@pytest.mark.slow
def test_one_more_of_everything_breaks_no_test_and_needs_no_edit(tmp_path: Path) -> None:
    copy, links = tmp_path / "repository", tmp_path / "links"
    shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(*ELSEWHERE))
    links.mkdir()
    (links / "vcpo_bench").symlink_to(copy)
    environment = os.environ | {"PYTHONPATH": str(links), "PYTHONDONTWRITEBYTECODE": "1"}

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)

    for kind, (name, folder) in WRITTEN.items():
        made = python("-m", "vcpo_bench", "new", kind, name, "--folder", str(tmp_path / "new"))
        assert made.returncode == 0, made.stderr
        file = name.replace("-", "_") + ".py"
        shutil.move(tmp_path / "new" / file, copy / folder / file)
    for path, text in OTHERS.items():
        (copy / path).write_text(text)
    for page in ("make_columns", "make_methods"):  # generated: CONTRIBUTING says to write them anew
        made = python(f"tools/{page}.py")
        assert made.returncode == 0, made.stderr
    # no cache, because the copy is thrown away; it ends after 30 failures, as many as anybody reads at once
    tested = python("-m", "pytest", *TESTS.split(), "-p", "no:cacheprovider", "--maxfail=30")
    assert tested.returncode == 0, tested.stdout[-8000:]
