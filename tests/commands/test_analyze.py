"""`vcpo-bench lab analyze`."""

from pathlib import Path

import pytest
from command_line import call

from vcpo_bench.analysis.commands import ANALYSES


@pytest.mark.parametrize("kind", ANALYSES.names())
def test_analyzes(finished: Path, tmp_path: Path, kind: str) -> None:
    result = call("lab", "analyze", kind, str(finished), "--out", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "tables").glob("*.csv"))


def test_the_id_of_a_finding_leads_to_its_rows(finished: Path) -> None:
    first = call("lab", "analyze", "collapse", str(finished), "--ids").stdout.splitlines()[0]
    number, _, text = first.partition("  ")
    traced = call("results", "trace", number, str(finished))
    assert traced.exit_code == 0, traced.output
    assert traced.stdout.startswith(f"{number}: {text}\n")


def test_an_id_cannot_be_had_of_an_analysis_with_parameters(finished: Path) -> None:
    result = call("lab", "analyze", "compare(replications=20)", str(finished), "--ids")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "leave out the parameters" in result.stderr


def test_the_help_says_that_an_analysis_takes_parameters() -> None:
    assert "compare(replications=500)" in " ".join(call("lab", "analyze", "--help").output.split())


def test_an_unknown_analysis_is_one_line_with_the_closest(finished: Path) -> None:
    result = call("lab", "analyze", "colapse", str(finished))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown analysis 'colapse'; did you mean collapse")
    assert result.stderr.count("\n") == 1


def test_what_cannot_be_answered_is_counted_after_what_can(finished: Path) -> None:
    *known, counted = call("lab", "analyze", "collapse", str(finished)).stdout.splitlines()
    assert known[0].startswith("Outcomes of ")
    assert not any("compared" in line for line in known)
    assert counted.endswith("cannot be answered from so few runs; --ids prints them too")
    every = call("lab", "analyze", "collapse", str(finished), "--ids").stdout.splitlines()
    assert len(every) == len(known) + int(counted.split()[0])
