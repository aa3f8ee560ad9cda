"""What an import loads, and what works where a library is not installed; each in a process that begins with nothing."""

import subprocess
import sys
from pathlib import Path

from patience import within

LOG = Path(__file__).parent / "analysis" / "logs" / "golden" / "verl_console.log"

LIGHT = """
import sys, time

def loaded(*names):
    return sorted(set(names) & set(sys.modules))

began = time.process_time()
import vcpo_bench as vb
assert time.process_time() - began < 0.2
assert not loaded("torch", "pandas", "numpy", "matplotlib"), "vcpo_bench"
from vcpo_bench.cli import app
try:
    app(["--help"])
except SystemExit as ended:
    assert not ended.code
heavy = loaded("torch", "numpy", "pandas", "scipy", "pyarrow", "matplotlib", "pydantic", "yaml", "jinja2")
assert not heavy, f"help loads {heavy}"
import vcpo_bench.records
assert not loaded("torch", "numpy", "pandas"), "records"
from vcpo_bench.analysis import Monitor
Monitor().step([0.0, 1.0], rewards=[0, 1], grad_norm=1.0)
assert not loaded("scipy", "pandas", "pyarrow", "torch"), "Monitor needs numpy only"
import vcpo_bench.records.steps
assert not loaded("torch", "pandas"), "records.steps"
vb.load, vb.diagnose, vb.Monitor
assert not loaded("torch"), "results are read without torch"
import vcpo_bench.reports.writers.html, vcpo_bench.reports.terminal.live, vcpo_bench.reports.terminal.scoreboard
assert not loaded("torch", "matplotlib.pyplot"), "reports"
"""

ONE_VERB = """
import sys
from vcpo_bench.cli import app
try:
    app(["results", "check", "--help"])
except SystemExit as ended:
    assert not ended.code
verbs = {name.removeprefix("vcpo_bench.commands.") for name in sys.modules if name.startswith("vcpo_bench.commands.")}
verbs = {name for name in verbs if not name.startswith("support")}
assert verbs == {"results", "results.check"}, verbs
"""

ABSENT = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in absent:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())

def import_all(*packages):
    for package in map(importlib.import_module, packages):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
"""
"""Packages named in `absent` cannot be imported."""

WITHOUT_TORCH = f"""
absent = {{"torch", "safetensors"}}
{ABSENT}
import vcpo_bench as vb, vcpo_bench.cli
import_all("vcpo_bench.analysis", "vcpo_bench.reports", "vcpo_bench.naming", "vcpo_bench.bench.regimes")
vb.load, vb.Monitor()
assert vb.diagnose(sys.argv[1]).verdict
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.regimes.simulation import describe
assert all("lag max" in describe(name, 3, 9, 0) for name in REGIMES.names() if name != "async")
"""

WITHOUT_TRAINERS = f"""
absent = {{"trl", "transformers", "accelerate", "datasets", "vllm"}}
{ABSENT}
import_all("vcpo_bench.adapters")
from vcpo_bench.bench.samplers.catalog import SAMPLERS
assert "vllm-server" in SAMPLERS.names()
from vcpo_bench.adapters.trl import with_method
try:
    with_method(object, "vcpo")
except ValueError as error:
    assert str(error) == "TRL is not installed: pip install '.[trl]' in a checkout", error
"""


def run(code: str, *arguments: str) -> None:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(120))
    assert done.returncode == 0, done.stderr


def test_what_is_light_loads_nothing_heavy() -> None:
    run(LIGHT)


def test_a_verb_loads_no_other_verb() -> None:
    run(ONE_VERB)


def test_results_and_logs_are_read_and_regimes_planned_without_torch() -> None:
    run(WITHOUT_TORCH, str(LOG))


def test_adapters_are_imported_without_trainers_and_say_what_to_install() -> None:
    run(WITHOUT_TRAINERS)
