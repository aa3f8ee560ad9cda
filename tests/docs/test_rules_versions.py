"""Every page with results says under which rules they came about, and how rules that are gone are had again."""

import re
from pathlib import Path

import pytest

from vcpo_bench.records import RULES_VERSION

DOCS = Path(__file__).parents[2] / "docs"
STUDIES = [*(DOCS / "studies").glob("*.md"), *(DOCS / "studies").glob("*/README.md")]
REWARDS = [DOCS / "benchmarks" / "regimes.md", DOCS / "benchmarks" / "async.md"]
SAID = re.compile(r"^> \*\*Rules (\d+\.\d+)\*\*(.*(?:\n> .*)*)", re.MULTILINE)


@pytest.mark.parametrize("page", [*STUDIES, *REWARDS], ids=lambda page: str(page.relative_to(DOCS)))
def test_results_name_their_rules(page: Path) -> None:
    said = SAID.search(page.read_text(encoding="utf-8"))
    assert said, "add a line such as '> **Rules 2.0**' below the heading"
    version, rest = said.groups()
    if version != RULES_VERSION:
        target = re.search(r"\]\(([^)#]+)#rules-versions\)", rest)
        assert target, "link to how these rules are had again"
        assert (page.parent / target[1]).resolve() == DOCS / "runs.md"


def test_the_page_on_runs_has_a_column_of_every_version() -> None:
    section = (DOCS / "runs.md").read_text(encoding="utf-8").split("\n## Rules versions\n")[1].split("\n## ")[0]
    columns = next(line for line in section.splitlines() if line.startswith("| |"))
    versions = {m[1] for page in STUDIES if (m := SAID.search(page.read_text(encoding="utf-8")))} | {RULES_VERSION}
    assert versions <= set(re.findall(r"\d+\.\d+", columns))
