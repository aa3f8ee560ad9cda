"""What `import vcpo_bench` offers, and what it costs."""

import ast
from pathlib import Path

import pytest

import vcpo_bench as vb

ROOT = Path(vb.__file__).resolve().parent
NAMES = ["Monitor", "Tables", "diagnose", "figure", "load", "methods", "run"]


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
