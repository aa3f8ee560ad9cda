"""Files that an expression or a model's folder names: none is waited for, and none is run."""

import ast
import os
from pathlib import Path

import pytest
from import_graph import read_package

import vcpo_bench
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.tasks.catalog import TASKS
from vcpo_bench.errors import UsageError

PACKAGE = Path(vcpo_bench.__path__[0])
LOADERS = {"pickle.load", "pickle.loads", "torch.load", "np.load", "yaml.load", "eval", "exec"}
"""Calls that can run what they read."""
OUR_OWN = {
    "bench/tasks/text/scoring/confined_program.py",  # what our own process wrote to it
    "files/plain_yaml.py",  # with a loader that makes plain values only
    "analysis/logs/names.py",  # a file of the package
}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("expression", ["random(trace={})", "math(data={})", "countdown(data={})"])
def test_what_an_expression_reads_is_a_file(tmp_path: Path, kind: str, expression: str) -> None:
    path = tmp_path / "x.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    catalog = REGIMES if "trace" in expression else TASKS
    with pytest.raises(UsageError):
        catalog.parse(expression.format(path))


def test_no_code_of_a_model_is_run() -> None:
    """Every file that loads a model or a tokenizer says so."""
    files = {file for file, call in calls_of_package() if ast.unparse(call.func).endswith("from_pretrained")}
    assert files
    assert [file for file in files if '"trust_remote_code": False' not in (PACKAGE / file).read_text()] == []


def test_nothing_is_loaded_in_a_way_that_can_run_it() -> None:
    found = {
        (file, ast.unparse(call))
        for file, call in calls_of_package()
        if ast.unparse(call.func) in LOADERS and file not in OUR_OWN
    }
    assert {file for file, text in found if "weights_only=True" not in text} == set()


def calls_of_package() -> list[tuple[str, ast.Call]]:
    return [
        (str(file.path.relative_to(PACKAGE)), node)
        for file in read_package(PACKAGE).values()
        for node in ast.walk(ast.parse(file.path.read_text()))
        if isinstance(node, ast.Call)
    ]
