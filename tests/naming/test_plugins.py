"""Plug-in files: what they add, what replaces what, and errors of one line."""

from pathlib import Path

import pytest
from kitchen import Dish

from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.errors import PluginError
from vcpo_bench.naming.plugins import load_plugin, plugin_digests

HEAD = "from __future__ import annotations\n"
STEW = '''
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar
from kitchen import Dish
from vcpo_bench.naming.parameters import integer

@dataclass(frozen=True, kw_only=True)
class Stew(Dish):
    """Thicker than soup."""
    name: ClassVar[str] = "stew"
    hours: int = integer(2, minimum=1)
'''
UNFINISHED = STEW.replace("(Dish)", "(Dish, ABC)") + "    @abstractmethod\n    def serve(self) -> str: ...\n"
PIE = STEW.replace("Stew", "Pie").replace('"stew"', '"pie"')


def test_a_file_adds_what_it_defines(dishes: Catalog[Dish], tmp_path: Path) -> None:
    file = tmp_path / "stew.py"
    file.write_text(HEAD + STEW + PIE)
    assert load_plugin(file) == ["pie", "stew"]
    assert dishes.origin("stew") == str(file)
    assert dishes.parse("stew(3)").text() == "stew(hours=3)"
    assert len(dishes.parse("stew").source) == 10


def test_a_file_with_postponed_annotations_and_dataclasses(dishes: Catalog[Dish], tmp_path: Path) -> None:
    own = (
        "\n@dataclass\nclass Helper:\n    kind: ClassVar[str] = ''\n    lid: Helper | None = None\n    size: int = 3\n"
    )
    file = tmp_path / "pot.py"
    file.write_text(HEAD + STEW + own + "assert Helper(None, 2).size == 2 and not hasattr(Helper(), 'nothing')\n")
    assert load_plugin(file) == ["stew"]


def test_an_edited_file_replaces_all_that_it_defined(dishes: Catalog[Dish], tmp_path: Path) -> None:
    file = tmp_path / "stew.py"
    file.write_text(HEAD + STEW + PIE)
    load_plugin(file)
    before = dishes.get("stew")
    file.write_text(STEW.replace("integer(2", "integer(5"))
    load_plugin(str(file))
    assert dishes.get("stew") is not before
    assert dishes.get("stew").source != before.source
    assert "pie" not in dishes.names()


def test_files_of_one_name_in_two_folders_do_not_meet(dishes: Catalog[Dish], tmp_path: Path) -> None:
    for folder, text in (("a", STEW), ("b", PIE)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(text)
        load_plugin(tmp_path / folder / "mine.py")
    assert {"stew", "pie"} <= set(dishes.names())
    assert dishes.get("stew").__module__ != dishes.get("pie").__module__


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "failed while loading: ZeroDivisionError"),
        ("raise SystemExit('enough')", "failed while loading: SystemExit: enough"),
        ("import sys; sys.exit(0)", "failed while loading: SystemExit: 0"),
        ("raise ValueError('first\\nsecond')", "ValueError: first second"),
        ("def broken(:", "SyntaxError"),
        ("x = 1", r"holds no named subclass of one of ours \(.*Dish.*\)"),
        (STEW.replace('"stew"', '"soup"'), "defines the dish 'soup', which kitchen already does"),
        (STEW.replace('"stew"', "7"), "the dish 7 has a name that cannot be typed; use lower-case words joined by '-'"),
        (STEW.replace('"stew"', '"My Stew+(x)"'), r"the dish 'My Stew\+\(x\)' has a name that cannot be typed"),
        (STEW.replace("@dataclass(frozen=True, kw_only=True)", ""), "is not a dataclass; write @dataclass"),
        (
            f"{STEW.replace('(Dish)', '(Dish, ABC)')}    @abstractmethod\n    def serve(self) -> str: ...\n",
            "does not define serve",
        ),
    ],
)
def test_a_file_that_does_not_load_is_one_line_and_adds_nothing(
    dishes: Catalog[Dish], tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "plug.py"
    file.write_text(PIE)
    load_plugin(file)
    file.write_text(f"{PIE}\n{text}" if "class Stew" in text else text)
    with pytest.raises(PluginError, match=message) as caught:
        load_plugin(file)
    assert "\n" not in str(caught.value)
    assert dishes.names() == ["bread", "pie", "soup", "tap-water"]  # as before


def test_what_is_no_file_is_named(dishes: Catalog[Dish], tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="does not exist"):
        load_plugin(tmp_path / "nothing.py")
    (tmp_path / "words.txt").write_text("stew")
    with pytest.raises(PluginError, match=r"give a path ending in \.py"):
        load_plugin(tmp_path / "words.txt")


def test_digests_of_several_plugins_are_sorted_and_each_stands_once() -> None:
    assert plugin_digests("", "") == ""
    assert plugin_digests("b", "a+b", "") == "a+b"
