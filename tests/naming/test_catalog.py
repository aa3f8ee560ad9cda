"""Catalogs: what is found, under which names, and objects from expressions."""

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kitchen import Bread, Dish, Soup, Water

import vcpo_bench.naming.entries as entries
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.catalog import CATALOGS, Catalog
from vcpo_bench.naming.errors import ExpressionError, PluginError

shared = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STEW = '''
from dataclasses import dataclass
from typing import ClassVar
from kitchen import Dish, Soup

@dataclass(frozen=True, kw_only=True)
class Stew(Dish):
    """Thicker than soup."""
    name: ClassVar[str] = "{name}"

class NotNamed(Dish):
    pass
'''


def test_names_classes_and_origins(dishes: Catalog[Dish]) -> None:
    assert dishes.names() == ["bread", "soup", "tap-water"]
    assert dishes.kinds == {"bread": Bread, "soup": Soup, "tap-water": Water}
    assert (dishes.get("soup"), dishes.origin("soup")) == (Soup, "kitchen")
    assert CATALOGS["dish"] is dishes


def test_an_unknown_name_offers_close_ones(dishes: Catalog[Dish]) -> None:
    with pytest.raises(UsageError) as caught:
        dishes.get("soop")
    assert str(caught.value) == "unknown dish 'soop'; did you mean soup? Known: bread, soup, tap-water"
    with pytest.raises(UsageError, match=r"^unknown dish 'zzz'; known: bread, soup, tap-water$"):
        dishes.get("zzz")


def test_a_class_is_found_without_reading_its_parameters(dishes: Catalog[Dish]) -> None:
    assert dishes.class_of("soup(salt=nonsense)") is Soup
    with pytest.raises(ExpressionError, match="unknown dish 'soop'; did you mean soup"):
        dishes.class_of("soop(salt=1)")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("soup", Soup()),
        (" soup ( 3 , hot=off ) ", Soup(spoons=3, hot=False)),
        ("soup(salt=1/8,spoons=12)", Soup(salt=0.125, spoons=12)),
        ("soup(garnish=)", Soup(garnish="")),
        ("soup(garnish=a[1,2]/b=c)", Soup(garnish="a[1,2]/b=c")),
        ("soup(beside=bread( high = 2.0 ))", Soup(beside="bread(high=2)")),
        ("bread(low=1,high=2)", Bread(low=1.0, high=2.0)),
        ("tap-water()", Water()),
    ],
)
def test_an_expression_is_an_object(dishes: Catalog[Dish], text: str, made: Dish) -> None:
    assert dishes.parse(text) == made
    assert dishes.parse(made.text()) == made


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("soop(3)", 0, ["unknown dish 'soop'", "did you mean soup"]),
        ("soup(spons=3)", 5, ["no parameter 'spons'", "did you mean spoons", "kind (clear | thick)"]),
        ("soup(zzz=3)", 5, ["no parameter 'zzz'. It takes:"]),
        ("soup(spoons=x)", 12, ["spoons=x is not legal. spoons must be a whole number from 1 to 12"]),
        ("soup(kind=thik)", 10, ["kind=thik is not legal; did you mean thick? kind must be clear | thick"]),
        ("soup(3,4)", 7, ["expected key=value"]),
        ("soup(hot=off,3)", 13, ["expected key=value"]),
        ("soup(3,spoons=4)", 7, ["spoons is given twice"]),
        ("bread(3)", 6, ["expected key=value; bread takes: low (a number); high (a number)"]),
        ("tap-water(3)", 10, ["expected key=value; tap-water takes: no parameters"]),
        ("tap-water(x=3)", 10, ["tap-water has no parameter 'x'"]),
        ("bread(low=2,high=1)", 0, ["low=2 is above high=1"]),
        ("soup(beside=bread(lo=1))", 18, ["bread has no parameter 'lo'"]),
        ("soup+bread", 5, ["a dish cannot be added to another with '+'"]),
        ("soup:hot", 5, ["'hot' after the name of a dish"]),
        ("", 0, ["missing"]),
    ],
)
def test_errors_point_at_the_character(dishes: Catalog[Dish], text: str, position: int, words: list[str]) -> None:
    with pytest.raises(ExpressionError) as caught:
        dishes.parse(text)
    assert caught.value.position == position
    for word in words:
        assert word in caught.value.problem


WORDS = ["soup", "bread", "spoons", "salt", "hot", "low", "beside", "garnish", "on", "taste", "1", "-2.5"]


def attempt(parse: Callable[[], Any]) -> tuple[Any, ExpressionError | None]:
    """What it returns, or the error it raises."""
    try:
        return parse(), None
    except ExpressionError as error:
        return None, error


@shared
@given(st.lists(st.sampled_from([*WORDS, *"()[],=+: "]), max_size=14).map("".join))
def test_any_text_is_an_object_or_an_error_at_one_of_its_characters(dishes: Catalog[Dish], text: str) -> None:
    made, error = attempt(lambda: dishes.parse(text))
    if error is not None:
        assert error.expression == text
        assert 0 <= error.position <= len(text)
    else:
        assert dishes.parse(made.text()) == made
        assert dishes.parse(made.text()).text() == made.text()


SOUPS = st.builds(
    Soup,
    spoons=st.integers(1, 12),
    salt=st.one_of(st.just("taste"), st.floats(0, allow_nan=False)),
    heat=st.floats(0, 100, exclude_min=True, exclude_max=True),
    kind=st.sampled_from(["clear", "thick"]),
    hot=st.booleans(),
    garnish=st.text(alphabet="ab./=-+", max_size=6),
    beside=st.sampled_from(["bread", "bread(high=2)", "soup(spoons=4)"]),
)


@shared
@given(SOUPS)
def test_an_object_is_what_its_text_says(dishes: Catalog[Dish], soup: Soup) -> None:
    assert dishes.parse(soup.text()) == soup


def test_a_list_has_each_object_once(dishes: Catalog[Dish]) -> None:
    found = dishes.parse_list("soup, soup(2), bread(low=0,high=1) ,soup(spoons=3)")
    assert [one.text() for one in found] == ["soup", "bread(high=1)", "soup(spoons=3)"]


def package(folder: Path, **modules: str) -> str:
    """A package on the path with these modules; its name."""
    place = folder / "larder"
    place.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (place / f"{name}.py").write_text(text)
    return "larder"


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] in ("larder", "bakery")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_the_modules_of_a_folder_are_listed(dishes: Catalog[Dish], on_path: Path) -> None:
    name = package(on_path, stew=STEW.format(name="stew"), helper="import math")
    (on_path / name / "cellar").mkdir()
    (on_path / name / "cellar" / "__init__.py").write_text(STEW.format(name="wine"))
    catalog = Catalog("dish", Dish, [name], plural="dishes")
    assert catalog.names() == ["stew"]  # nothing of the sub-folder, nothing imported, nothing without a name
    assert catalog.origin("stew") == "larder.stew"


def test_two_files_of_one_name_are_refused_and_nothing_is_half_listed(dishes: Catalog[Dish], on_path: Path) -> None:
    name = package(on_path, one=STEW.format(name="stew"), two=STEW.format(name="stew"))
    catalog = Catalog("dish", Dish, [name], plural="dishes")
    for _ in range(2):
        with pytest.raises(PluginError, match=r"larder.two defines the dish 'stew', which larder.one already does"):
            catalog.names()


def test_a_name_is_taken_once(dishes: Catalog[Dish]) -> None:
    thief = type("Thief", (Water,), {"name": "soup"})
    with pytest.raises(PluginError, match="defines the dish 'soup'"):
        dishes.add(thief, "elsewhere")
    dishes.add(Soup, "again")  # the class itself may come twice


def test_entry_points_add_and_broken_ones_are_shown(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(
        on_path,
        stew=STEW.format(name="stew"),
        crash="raise RuntimeError('no such\\n luck')",
        leaves="raise SystemExit(0)",
    )
    asked = []
    points = [
        EntryPoint("stew", "larder.stew:Stew", "-"),
        EntryPoint("module", "larder.stew", "-"),
        EntryPoint("crash", "larder.crash", "-"),
        EntryPoint("leaves", "larder.leaves", "-"),
        EntryPoint("absent", "larder.nobody", "-"),
        EntryPoint("odd", "larder.stew:dataclass", "-"),
        EntryPoint("unnamed", "larder.stew:NotNamed", "-"),
    ]
    monkeypatch.setattr(entries, "entry_points", lambda group: asked.append(group) or points)
    catalog = Catalog("dish", Dish, (), plural="dishes")
    try:
        assert catalog.names() == ["stew"]
        assert catalog.origin("stew") == "entry point larder.stew"
        errors = {broken.name: broken.error for broken in catalog.broken}
    finally:
        del CATALOGS["dish"]
    assert asked == ["vcpo_bench.dishes"]
    assert errors["crash"] == "RuntimeError: no such luck"
    assert errors["leaves"] == "SystemExit: 0"
    assert "larder.nobody" in errors["absent"]
    assert "holds no named subclass of kitchen.Dish" in errors["odd"]
    assert "holds no named subclass of kitchen.Dish" in errors["unnamed"]


def test_what_is_forgotten_is_listed_anew(dishes: Catalog[Dish]) -> None:
    dishes.forget()
    assert dishes.names() == []
