"""Templates: two files that load, and nothing overwritten."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from kitchen import Dish

from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.errors import PluginError
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.naming.template import write_new

MODULE = '''"""{title}."""

from dataclasses import dataclass
from typing import ClassVar

from kitchen import Dish


@dataclass(frozen=True, kw_only=True)
class {cls}(Dish):
    """One."""

    name: ClassVar[str] = "{name}"
'''
TEST = "{module} {{}}"


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch, dishes: Catalog[Dish]) -> ModuleType:
    module = ModuleType(dishes.template)
    module.MODULE, module.TEST = MODULE, TEST  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, dishes.template, module)
    return module


def test_two_files_are_written_and_the_first_is_a_plugin(
    dishes: Catalog[Dish], texts: ModuleType, tmp_path: Path
) -> None:
    files = write_new(dishes, "my-big-pie", tmp_path / "mine")
    assert [file.name for file in files] == ["my_big_pie.py", "test_my_big_pie.py"]
    assert "class MyBigPie(Dish)" in files[0].read_text()
    assert files[0].read_text().startswith('"""My big pie."""')
    assert files[1].read_text() == "my_big_pie {}"
    assert load_plugin(files[0]) == ["my-big-pie"]


@pytest.mark.parametrize("name", ["My Pie", "pie_one", "-pie", "pie-", "1pie", "", "pie--one", "../pie", "class"])
def test_names_that_are_no_words_are_refused(
    dishes: Catalog[Dish], texts: ModuleType, tmp_path: Path, name: str
) -> None:
    with pytest.raises(PluginError, match="use lower-case words joined by '-', such as my-dish"):
        write_new(dishes, name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_name_is_refused(dishes: Catalog[Dish], texts: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="there is a dish 'soup' already"):
        write_new(dishes, "soup", tmp_path)


@pytest.mark.parametrize("existing", ["pie.py", "test_pie.py"])
def test_nothing_is_overwritten(dishes: Catalog[Dish], texts: ModuleType, tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("mine")
    with pytest.raises(PluginError, match=rf"{existing} exists"):
        write_new(dishes, "pie", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [existing]


def test_a_kind_without_a_template_says_so(dishes: Catalog[Dish], tmp_path: Path) -> None:
    dishes.template = ""
    with pytest.raises(PluginError, match="there is no template"):
        write_new(dishes, "pie", tmp_path)
