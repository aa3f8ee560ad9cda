"""The tables of methods in the adapters' pages are current."""

from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = run_path(str(ROOT / "tools" / "make_adapters.py"))


@pytest.mark.parametrize("page", MADE["PAGES"], ids=lambda page: page.name)
def test_the_table_is_what_the_methods_say(page: Path) -> None:
    assert page.read_text() == MADE["render"](page), "run: python tools/make_adapters.py"


def test_every_method_has_its_row() -> None:
    rows = MADE["table"](lambda locality: "").splitlines()
    assert any(row.startswith("| `vcpo` | the row | the prompt's rows | scaled | score_norm_sq |") for row in rows)
    assert any(row.startswith("| `m2po` | all rows |") for row in rows)
    assert any("| `+ess` " in row for row in rows)
