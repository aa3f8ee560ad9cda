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
    rows = MADE["table"](lambda method: "").splitlines()
    assert any(row.startswith("| `vcpo` | the row | the prompt's rows | scaled | score_norm_sq |") for row in rows)
    assert any(row.startswith("| `m2po` | all rows |") for row in rows)
    assert any("| `+ess` " in row for row in rows)


def test_the_page_of_verl_names_what_a_policy_loss_can_do() -> None:
    rows = {row.split("`")[1]: row for row in MADE["table"](MADE["in_verl"]).splitlines() if "`" in row}
    assert rows["tis"].endswith("| loss mode or trainer |")
    assert all(rows[name].endswith("| trainer |") for name in ("m2po", "snis", "gepo", "topr", "+ess", "+rloo"))
    assert rows["vcpo"].endswith("| refused: needs whole weights |")
    assert sum("loss mode" in row for name, row in rows.items() if not name.startswith("+")) == 43
