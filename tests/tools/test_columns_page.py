"""The page of recorded columns is current."""

from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_schema_says() -> None:
    made = run_path(str(ROOT / "tools" / "make_columns.py"))
    assert made["PAGE"].read_text() == made["render"](), "run: python tools/make_columns.py"
