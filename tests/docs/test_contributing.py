"""What CONTRIBUTING says of adding something is so: which kinds `new` writes, and which can be plug-in files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vcpo_bench.commands.support.kinds.find import kinds, load_catalogs
from vcpo_bench.naming.catalog import CATALOGS
from vcpo_bench.naming.errors import PluginError
from vcpo_bench.naming.plugins import load_plugin

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| an? ([a-z]+)[^|*+]*(\*? ?\+?) \| `", TEXT, flags=re.MULTILINE))


def test_stars_are_the_kinds_that_new_writes_and_pluses_those_of_plugin_files() -> None:
    known = {kind.singular: kind for kind in kinds()}
    assert {name for name, marks in ROWS.items() if "*" in marks} == {
        name for name, kind in known.items() if kind.has_template
    }
    assert {name for name, marks in ROWS.items() if "+" in marks} == {
        name for name, kind in known.items() if kind.module
    }


def test_the_set_up_installs_the_tools_it_speaks_of() -> None:
    assert "pip install -e '.[test,dev]'" in TEXT
    assert "python tools/make_docs.py" in TEXT
    assert (ROOT / "tools" / "make_docs.py").is_file()


def test_a_file_that_adds_nothing_is_told_the_public_classes_to_subclass(tmp_path: Path) -> None:
    load_catalogs()
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    with pytest.raises(PluginError) as caught:
        load_plugin(file)
    said = re.search(r"one of ours \((.*)\)", str(caught.value))
    assert said
    names = said[1].split(", ")
    assert {"TokenTask", "TextTask", "RatioMethod", "Mask", "Regime", "Sampler", "Signal", "Analysis"} <= set(names)
    assert not {"NamedTask", "MethodComponent"} & set(names)
    assert {name for one in CATALOGS.values() for name in one.to_subclass} == set(names)
