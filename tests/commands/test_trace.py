"""`vcpo-bench results trace`."""

import re
from pathlib import Path

from command_line import call


def test_an_id_of_the_page_leads_to_rows(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("report", str(finished), "--html", str(page)).exit_code == 0
    found = re.search(r"final_reward-[0-9a-f]{8}", page.read_text())
    assert found
    traced = call("results", "trace", found[0], str(finished))
    assert traced.exit_code == 0, traced.output
    assert traced.stdout.startswith(found[0])
    assert "walk-eos" in traced.stdout


def test_an_unknown_id_is_one_line(finished: Path) -> None:
    result = call("results", "trace", "nothing", str(finished))
    assert result.exit_code == 2
    assert "nothing" in result.stderr
    assert result.stderr.count("\n") == 1
