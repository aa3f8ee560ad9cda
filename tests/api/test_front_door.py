"""What `import vcpo_bench` offers, and what it costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vcpo_bench as vb

ROOT = Path(vb.__file__).resolve().parent
NAMES = ["Monitor", "Tables", "diagnose", "load", "methods", "run"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    assert getattr(vb, name).__doc__
    assert name in dir(vb)
    assert name in vb.__all__


def test_nothing_else_is_listed() -> None:
    assert dir(vb) == sorted([*NAMES, "__version__"])


def test_type_checkers_know_the_same_names() -> None:
    stub = ast.parse((ROOT / "__init__.pyi").read_text())
    known = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted(known) == NAMES


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        vb.lode  # noqa: B018


def python_says(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_importing_it_imports_nothing_heavy_and_takes_no_time() -> None:
    code = (
        "import sys, time; began = time.process_time(); import vcpo_bench; spent = time.process_time() - began\n"
        "print(spent < 0.2, *{'torch', 'pandas', 'numpy', 'matplotlib'} & set(sys.modules))"
    )
    assert python_says(code) == "True"


def test_results_are_read_without_torch() -> None:
    code = "import sys, vcpo_bench as vb; vb.load, vb.diagnose, vb.Monitor; print('torch' in sys.modules)"
    assert python_says(code) == "False"
