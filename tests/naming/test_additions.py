"""Open bounds, settings of a component, plug-in classes that are not finished, and digests of several plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vcpo_bench.naming.catalog import CATALOGS, Catalog
from vcpo_bench.naming.component import Component
from vcpo_bench.naming.errors import ExpressionError, ParameterError, PluginError
from vcpo_bench.naming.parameters import integer, number
from vcpo_bench.naming.plugins import load_plugin, plugin_digests


@dataclass(frozen=True, kw_only=True)
class Dish(Component):
    """A base class of the test's own."""


@dataclass(frozen=True, kw_only=True)
class Soup(Dish):
    """One entry."""

    name = "soup"
    salt: float = number(1.0, above=0.0, maximum=2.0)
    spoons: int = integer(1, minimum=1)

    def settings(self) -> dict[str, str]:
        return super().settings() | {"cook": "me"}


@pytest.fixture
def dishes() -> Iterator[Catalog[Dish]]:
    catalog = Catalog("dish", Dish, (), plural="dishes")
    catalog.add(Soup, "the test")
    yield catalog
    del CATALOGS["dish"]


def test_the_canonical_text_shows_the_settings_in_alphabetical_order() -> None:
    assert Soup(spoons=3, salt=0.5).text() == "soup(cook=me,salt=0.5,spoons=3)"


@pytest.mark.parametrize("salt", [0.0, -1.0, 2.5])
def test_an_open_bound_is_not_legal_itself(salt: float) -> None:
    with pytest.raises(ParameterError, match="must be a number above 0, at most 2"):
        Soup(salt=salt)


def test_a_class_is_found_without_reading_its_parameters(dishes: Catalog[Dish]) -> None:
    assert dishes.class_of("soup(salt=nonsense)") is Soup
    with pytest.raises(ExpressionError, match="unknown dish 'soop'; did you mean soup"):
        dishes.class_of("soop(salt=1)")


PLUGIN = """
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar
from {test} import Dish
from vcpo_bench.naming.parameters import integer

class Stew(Dish, ABC):
    name: ClassVar[str] = "stew"
    {body}
"""


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("hours: int = integer(2, minimum=1)", "is not a dataclass; write @dataclass"),
        ("@abstractmethod\n    def serve(self) -> str: ...", "does not define serve"),
    ],
)
def test_a_plugin_class_that_is_not_finished_says_what_it_lacks(
    tmp_path: Path, dishes: Catalog[Dish], body: str, problem: str
) -> None:
    file = tmp_path / "stew.py"
    file.write_text(PLUGIN.format(test=__name__, body=body))
    with pytest.raises(PluginError, match=problem):
        load_plugin(file)
    assert "stew" not in dishes.names()


def test_digests_of_several_plugins_are_sorted_and_each_stands_once() -> None:
    assert plugin_digests("", "") == ""
    assert plugin_digests("b", "a+b", "") == "a+b"
