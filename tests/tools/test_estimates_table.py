"""The table of estimates in the docs is what the arithmetic gives, and says what it is."""

from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_current() -> None:
    made = run_path(str(ROOT / "tools" / "make_estimates.py"))
    page = made["PAGE"].read_text()
    assert made["rewritten"](page) == page, "run: python tools/make_estimates.py"
    assert made["render"]() in page
    assert "arithmetic, not measured" in page.partition(made["BEGIN"])[0].rpartition("\n## ")[2]
