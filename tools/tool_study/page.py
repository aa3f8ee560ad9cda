"""Writes the tables and the page of the study of tool use.

    python tools/tool_study/page.py RESULTS     # runs.csv from the results, then everything that follows from it
    python tools/tool_study/page.py             # everything that follows from the shipped runs.csv

A test fails when the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from design import ARMS, SINCE

# isort: split
from arm_study.page_maker import PageMaker
from tables import COLUMNS, made

PAGE = PageMaker("tool-use", Path(__file__).with_name("page.md"), ARMS, COLUMNS, SINCE, made)

if __name__ == "__main__":
    PAGE.main(sys.argv[1:])
