"""Components: one canonical spelling, no illegal value however they are made, and parameters that a kind shares."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from kitchen import Soup, Water

from vcpo_bench.naming import catalog as catalogs
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.naming.errors import ExpressionError, ParameterError, PluginError
from vcpo_bench.naming.parameters import integer, number
from vcpo_bench.naming.plugins import load_plugin, plugin_files


def test_the_canonical_text_has_only_what_differs_from_the_defaults() -> None:
    assert Soup().text() == "soup"
    assert Soup(spoons=2, salt=0.5).text() == "soup"
    assert Soup(spoons=3, hot=False, salt="taste").text() == "soup(hot=off,salt=taste,spoons=3)"
    assert Soup(heat=61.0).settings() == {"heat": "61"}


class Served(Soup):
    """Says more of itself than its parameters."""

    def settings(self) -> dict[str, str]:
        return super().settings() | {"cook": "me"}


def test_the_canonical_text_shows_the_settings_in_alphabetical_order() -> None:
    assert Served(spoons=3, salt=0.75).text() == "soup(cook=me,salt=0.75,spoons=3)"


def test_parameters_are_in_the_order_of_their_fields() -> None:
    assert list(parameters(Soup)) == ["spoons", "salt", "heat", "kind", "hot", "garnish", "beside"]
    assert parameters(Water) == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"spoons": 0}, "soup: spoons=0 must be a whole number from 1 to 12"),
        ({"kind": "runny"}, "soup: kind='runny' must be one of: clear | thick"),
        ({"garnish": "a,b"}, "soup: garnish='a,b' cannot be written"),
    ],
)
def test_an_illegal_value_from_python_names_all_there_is_to_know(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Soup(**wrong)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_equal_components_are_one() -> None:
    assert len({Soup(), Soup(spoons=2), Soup(spoons=3)}) == 2


@dataclass(frozen=True, kw_only=True)
class Clock(Component):
    common: ClassVar[tuple[str, ...]] = ("ticks", "drift")

    ticks: int = integer(1, minimum=1)
    drift: float = number(0.0, minimum=0.0, below=math.inf, write="{:g}".format)


@dataclass(frozen=True, kw_only=True)
class Plain(Clock):
    name: ClassVar[str] = "plain"


@dataclass(frozen=True, kw_only=True)
class Rich(Clock):
    name: ClassVar[str] = "rich"

    depth: int = integer(0, minimum=0)


@pytest.fixture
def clocks() -> Iterator[Catalog[Clock]]:
    found = Catalog("clock", Clock, ())
    for kind in (Plain, Rich):
        found.add(kind, __name__)
    yield found
    del catalogs.CATALOGS["clock"]


def test_a_bare_value_is_never_a_common_parameter(clocks: Catalog[Clock]) -> None:
    assert list(parameters(Rich)) == ["depth", "ticks", "drift"]
    assert clocks.parse("rich(3,ticks=2)") == Rich(depth=3, ticks=2)
    assert clocks.parse("rich(3,ticks=2)").text() == "rich(depth=3,ticks=2)"
    assert clocks.parse("plain(ticks=2)") == Plain(ticks=2)
    with pytest.raises(ExpressionError, match="expected key=value; plain takes") as caught:
        clocks.parse("plain(2)")
    assert caught.value.position == len("plain(")


@pytest.mark.parametrize(("typed", "value"), [("0.1234567", 0.123457), ("1/3", 0.333333), ("1e-9", 1e-9)])
def test_a_number_read_is_what_its_canonical_text_says(clocks: Catalog[Clock], typed: str, value: float) -> None:
    found = clocks.parse(f"plain(drift={typed})")
    assert found.drift == value
    assert clocks.parse(found.text()) == found


@pytest.mark.parametrize("typed", ["inf", "nan", "-1", "1e999"])
def test_infinity_is_not_a_finite_number(clocks: Catalog[Clock], typed: str) -> None:
    with pytest.raises(ExpressionError, match="drift must be a finite number, 0 or more"):
        clocks.parse(f"plain(drift={typed})")


def test_the_files_that_another_process_must_load_are_known(clocks: Catalog[Clock], tmp_path: Path) -> None:
    file = tmp_path / "fast.py"
    file.write_text(
        "from typing import ClassVar\n"
        "from dataclasses import dataclass\n"
        "from vcpo_bench.naming.catalog import CATALOGS\n\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Fast(CATALOGS['clock'].base):\n"
        "    name: ClassVar[str] = 'fast'\n"
    )
    assert load_plugin(file) == load_plugin(file) == ["fast"]
    digest = clocks.parse("fast").source
    assert plugin_files("") == ()
    assert plugin_files(digest) == (file.resolve(),)
    with pytest.raises(PluginError, match="no plug-in with the digest 0123456789 is loaded"):
        plugin_files(f"{digest}+0123456789")
