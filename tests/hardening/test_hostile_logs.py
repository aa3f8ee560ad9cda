"""Logs of a stranger whose names and texts try to drive whatever shows them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import call
from hostile import DANGEROUS, HTML, NAME, TERMINAL, TEXT, active

Row = dict[str, Any]
ROWS: list[Row] = [
    {
        "step": step,
        "reward": 0.5,
        "critic/score/mean": 0.5 - step * 0.004,
        "actor/entropy": 2.0 / (1 + step),
        f"critic/rewards/{HTML}/mean": 0.1 * step,
        NAME: step,
        TERMINAL: step,
        f"critic/kl{TEXT}": step,
    }
    for step in range(80)
]


def console(rows: list[Row]) -> str:
    return "\n".join(
        f"step:{t} - critic/score/mean:0.5 - {HTML}:{t} - actor/entropy:1 {TEXT}" for t in range(len(rows))
    )


def table(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


LOGS: dict[str, Callable[[list[Row]], str]] = {
    "log.jsonl": lambda rows: "\n".join(map(json.dumps, rows)),
    "log.csv": table,
    "log.txt": console,
    "trainer_state.json": lambda rows: json.dumps({"logging_steps": 1, "log_history": rows}),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_diagnosis_shows_text(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run <script>alert(1)<"
    folder.mkdir()
    log, page = folder / name, folder / "page.html"
    log.write_text(LOGS[name](ROWS), newline="")
    for more in ((), ("--json",), ("--html", str(page)), ("--framework", TERMINAL)):
        shown = call("diagnose", str(log), *more)
        assert shown.exit_code == (2 if "--framework" in more else 0), shown.output
        assert DANGEROUS.search(shown.output) is None
    assert active(page) == []
