"""The gallery: every figure with its command, and pictures that are there and small."""

import re
from pathlib import Path

import pytest

from vcpo_bench.reports.plots.catalog import FIGURES
from vcpo_bench.reports.writers.venues import VENUES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "figures.md").read_text()
PARTS = re.split(r"^### ", PAGE, flags=re.M)[1:]


def test_every_figure_is_there() -> None:
    assert sorted(part.split()[0] for part in PARTS) == sorted(FIGURES)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.split()[0])
def test_a_figure_has_its_command_and_its_picture_or_says_what_it_needs(part: str) -> None:
    name = part.split()[0]
    assert re.search(rf"^    vcpo-bench report DIR --figure {name}$", part, flags=re.M)
    assert f"](figures/{name}.png)" in part or "needs" in part


def test_pictures_are_there_small_and_shown() -> None:
    shown = re.findall(r"!\[.+\]\((figures/.+\.png)\)", PAGE)
    assert sorted(shown) == sorted(str(path.relative_to(DOCS)) for path in (DOCS / "figures").iterdir())
    assert all((DOCS / path).stat().st_size < 90_000 for path in shown)


def test_venues_are_those_there_are() -> None:
    for venue in VENUES:
        assert f"`{venue}`" in PAGE
