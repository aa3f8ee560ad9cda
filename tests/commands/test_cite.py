"""`vcpo-bench cite`."""

import re
from pathlib import Path

import pytest
import yaml
from command_line import call

import vcpo_bench
from vcpo_bench.commands.support.bibtex import FULL, papers
from vcpo_bench.methods import METHODS

CITATION = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())


def test_the_suite_alone() -> None:
    shown = call("cite").stdout
    assert shown.count("@") == 1
    assert f"version = {{{vcpo_bench.__version__}}}" in shown


def test_every_method_of_a_folder_is_cited(finished: Path) -> None:
    shown = call("cite", str(finished)).stdout
    assert "eprint = {1707.06347}" in shown  # clip is PPO's
    assert "% reinforce: Williams 1992" in shown


def test_parts_are_cited_and_a_paper_only_once() -> None:
    shown = call("cite", "vcpo", "clip(high=0.28)+ess").stdout
    assert shown.count("2602.17616},") == 1
    assert "Huang, Luke J. and Zhang, Zhuoyang" in shown


def test_full_entries_are_those_of_the_citation_file() -> None:
    for one in CITATION["references"]:
        paper = FULL[one["identifiers"][0]["value"].removeprefix("arXiv:")]
        assert paper.title == one["title"]
        assert paper.authors == tuple(f"{a['family-names']}, {a['given-names']}" for a in one["authors"])


@pytest.mark.parametrize("name", METHODS.names())
def test_every_reference_becomes_entries_that_bibtex_reads(name: str) -> None:
    (*entries,) = papers([name])
    assert entries
    for entry in entries:
        lines = entry.splitlines()
        assert lines[0].startswith("% ")
        assert len(lines) == 1 or re.fullmatch(r"@misc\{arxiv_\d{4}_\d{5},", lines[1])
        assert entry.count("{") == entry.count("}")


def test_an_unknown_method_is_one_line() -> None:
    shown = call("cite", "vcop")
    assert shown.exit_code == 2
    assert "did you mean vcpo" in shown.stderr
