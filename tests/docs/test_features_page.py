"""The page of features: its count is that of its rows, and its evidence is there."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "features.md").read_text()
ROWS = re.findall(r"^\| (\d+) \| .+? \| (have|partly|none) \| (.+) \|$", PAGE, flags=re.M)


def test_the_count_is_that_of_the_rows() -> None:
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 69))
    states = Counter(state for _, state, _ in ROWS)
    assert f"**Of 68: {states['have']} have, {states['partly']} partly, {states['none']} none.**" in PAGE


def test_the_evidence_is_there() -> None:
    for number, _, evidence in ROWS:
        folder = Path()
        for path in re.findall(r"`((?:tests/|test_)[\w/.]+)`", evidence):
            folder = Path(path).parent if path.startswith("tests/") else folder
            assert (ROOT / (path if path.startswith("tests/") else folder / path)).exists(), (number, path)
