"""Components: one canonical spelling, and no illegal value however they are made."""

import pytest
from kitchen import Soup, Water

from vcpo_bench.naming.component import parameters
from vcpo_bench.naming.errors import ParameterError


def test_the_canonical_text_has_only_what_differs_from_the_defaults() -> None:
    assert Soup().text() == "soup"
    assert Soup(spoons=2, salt=0.5).text() == "soup"
    assert Soup(spoons=3, hot=False, salt="taste").text() == "soup(hot=off,salt=taste,spoons=3)"
    assert Soup(heat=61.0).settings() == {"heat": "61"}


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
