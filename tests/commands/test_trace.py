"""`vcpo-bench results trace`."""

from pathlib import Path

from command_line import call

from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import open_study


def test_an_id_of_the_report_leads_to_rows(finished: Path) -> None:
    known = next(one for one in build(open_study(finished)).ledger.numbers if one.startswith("final_reward-"))
    traced = call("results", "trace", known, str(finished))
    assert traced.exit_code == 0, traced.output
    assert traced.stdout.startswith(known)
    assert "walk-eos" in traced.stdout


def test_an_unknown_id_is_one_line(finished: Path) -> None:
    result = call("results", "trace", "nothing", str(finished))
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert result.stderr.count("\n") == 1
