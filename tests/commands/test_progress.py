"""A command that takes more than two seconds says on the terminal how far it is, and what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import RUN, VERBS, call, call_here
from slow_terminal import SlowTerminal

READING = ("reading cells", "reading evals")
SHOWN: dict[str, tuple[str, ...]] = {
    "compare A": (*READING, "reading steps", "comparing methods"),
    "lab analyze collapse A": (*READING, "judging by other rules"),
    "lab analyze weights A": ("reading cells", "reading steps", "reading trajectories"),
    "lab analyze gradients A": ("reading cells", "reading steps", "reading trajectories"),
    "lab analyze prediction A": (*READING, "judging signals"),
    "show A": (*READING, "reading steps"),
    "report A --html O.html": (*READING, "analyzing results", "drawing figures"),
    "results diff A B": (*READING, "comparing methods"),
    "results trace rankings A": (*READING,),
    "results export A --out O": (*READING, "writing tables"),
    "results check RUN": ("verifying cells",),
    "results cite A": ("reading cells",),
    "results merge A B --out O": ("comparing cells", "copying cells"),
    "results publish A --out O": (*READING,),
    "lab calibrate A --out O": (*READING, "judging signals", "smoothing signals", "tuning without some of the runs"),
    "lab calibrate LOG --out O": ("reading logs",),
    "lab mismatch --prompts 2 --responses 2 --components lag(2),head(bf16)": (
        "updates of lag",
        "sampling on each path",
    ),
    "lab audit-lag KEPT": ("checking pushes",),
    "lab audit-lag DUMPS --honest 5": ("reading dumps", "testing dumps"),
}
"""Commands and the loops that the line shows. Names in capitals are folders of `places`."""
OTHERWISE = {
    *("run", "demo", "lab fork", "run-cell", "watch"),  # a live view, or lines of their own
    *("lab warmup", "lab eval", "lab probe"),  # each the one loop it had; too long or too much to install for this test
    "results mirror",  # the loops of report, then a process of their own
    *("ls", "new", "lab schema", "lab plan", "doctor", "diagnose"),  # nothing to wait for
}
"""Verbs that are not here."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, make_results: Callable[..., Path]) -> dict[str, str]:
    root = tmp_path_factory.mktemp("progress")
    made = {
        "A": make_results(root / "A", steps=40, record="diagnostics", seeds=(0, 1), lrs=(1e-4, 3e-4)),
        "B": make_results(root / "B", steps=40, seeds=(3, 4)),
        "RUN": root / "run",
        "DUMPS": root / "dumps",
        "LOG": root / "log.jsonl",
    }
    run = call_here(*RUN, "--record", "full", "--keep-checkpoints", "every=2", "--out", str(made["RUN"]))
    assert run.exit_code == 0, run.output
    assert call("show", str(made["RUN"])).exit_code == 0
    made["KEPT"] = next((made["RUN"] / "cells").glob("*clip*"))
    made["DUMPS"].mkdir()
    random = np.random.default_rng(0)
    for step in range(12):
        pairs = [(now, now + random.normal(0, 0.01, 6)) for now in random.normal(-1, 0.1, (48, 6))]
        rows = [{"prev_logprobs": list(now), "generation_logprobs": list(then)} for now, then in pairs]
        lines = [json.dumps(row | {"loss_mask": [1] * 6}) for row in rows]
        (made["DUMPS"] / f"train_data_step{step}.jsonl").write_text("\n".join(lines))
    made["LOG"].write_text("\n".join(json.dumps({"step": step, "reward": 0.5}) for step in range(50)))
    return {name: str(path) for name, path in made.items()}


def words(command: str, places: dict[str, str], out: Path) -> list[str]:
    return [
        places.get(word, word.replace("O", str(out)) if word in ("O", "O.html") else word) for word in command.split()
    ]


@pytest.mark.parametrize("command", SHOWN)
def test_a_long_command_says_how_far_it_is(
    command: str, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = SlowTerminal(monkeypatch, seconds=2.0)
    result = call(*words(command, places, tmp_path / "out"))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert [loop for loop in SHOWN[command] if loop not in terminal.shown] == [], result.output
    assert "left" in terminal.shown


@pytest.mark.parametrize("command", ["show A", "lab analyze gradients A", "results check RUN"])
@pytest.mark.parametrize(("seconds", "terminal"), [(1.9, True), (60.0, False)], ids=["quick", "in a pipe"])
def test_one_that_is_quick_or_in_a_pipe_shows_nothing(
    command: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    terminal: bool,
) -> None:
    screen = SlowTerminal(monkeypatch, seconds, terminal)
    call(*words(command, places, tmp_path / "out"))
    assert screen.shown == ""


def test_a_verb_is_here_or_shows_itself_otherwise() -> None:
    here = {verb for verb in VERBS for command in SHOWN if f"{command} ".startswith(f"{verb} ")}
    assert here.isdisjoint(OTHERWISE)
    assert all(command.startswith(tuple(here)) for command in SHOWN)
    assert set(VERBS) >= OTHERWISE
