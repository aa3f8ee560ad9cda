"""Attacks on the sandbox: nothing gets out, and every program ends within its limits. Needs `pydantic-monty`."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

pytest.importorskip("pydantic_monty", reason="runs in .ci/integrations tools")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from attacks import ATTACKS
from patience import within

from vcpo_bench.bench.sandbox import PythonSandbox
from vcpo_bench.bench.sandbox.python import OUTPUT, SECONDS
from vcpo_bench.bench.sandbox.walls import NONE, strongest
from vcpo_bench.bench.tasks import EnvironmentTask, token_task
from vcpo_bench.bench.tasks.text import text_task

GRACE = within(3.0)
"""Seconds past its limit by which a program must have ended, on a machine that is busy with other things."""
SECRET = "xyzzy-plugh-7261"


@pytest.fixture(scope="module", params=["no wall", "strongest wall"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[PythonSandbox]:
    os.environ["VCPO_SECRET"] = SECRET
    found = PythonSandbox(NONE if request.param == "no wall" else strongest())
    yield found
    found.close()
    del os.environ["VCPO_SECRET"]


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 60


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_escapes_and_everything_ends(
    name: str, sandbox: PythonSandbox, tmp_path: Path, listener: socket.socket
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    program = ATTACKS[name]
    if not name.startswith("recursion"):
        program = program.format(secret=secret, port=listener.getsockname()[1])
    began = time.monotonic()
    ended = sandbox.run(program)
    assert time.monotonic() - began < SECONDS + GRACE
    assert SECRET not in ended.text
    assert "Linux" not in ended.text
    assert len(ended.text.encode(errors="replace")) < OUTPUT + 1000
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert secret.read_text() == SECRET
    with pytest.raises(BlockingIOError):
        listener.accept()
    if name.startswith(("escape", "reach")):
        assert ended.status == "error", ended
    assert sandbox.run("print(6 * 7)") == ("ok", "42\n")  # and the next one has a sandbox again


def test_a_thousand_sessions_share_nothing_and_are_repeatable(sandbox: PythonSandbox) -> None:
    """Prints the time of one; docs/sandbox.md names what was measured."""
    seen = "try: x\nexcept NameError: print('nothing before')\nx = 1"
    program = f"import random, time\nprint(random.random(), time.time())\n{seen}"
    first = sandbox.run(program)
    assert first.status == "ok"
    assert "nothing before" in first.text
    times = []
    for _ in range(1000):
        began = time.perf_counter()
        assert sandbox.run(program) == first
        times.append(time.perf_counter() - began)
    print(f"{sandbox.wall.name or 'no wall'}: {1e3 * median(times):.2f} ms a session")


def test_limits_are_told_apart(sandbox: PythonSandbox) -> None:
    programs = {"time": "while True: pass", "memory": "'a' * 10**10", "output": "while True: print('x' * 1000)"}
    assert {status: sandbox.run(program).status for status, program in programs.items()} == {s: s for s in programs}
    assert sandbox.run("print(1)\n1/0") == ("error", "1\nZeroDivisionError: division by zero")


def test_a_language_models_block_is_run() -> None:
    dialogue = text_task("gsm8k-python(data=sample)").dialogue
    assert dialogue is not None
    assert dialogue.reply("So:\n```python\nprint(6 * 7)\n```") == ("call", "\nCode execution result: 42\n")
    kind, shown = dialogue.reply("```\nopen('/etc/passwd').read()\n```")
    assert kind == "malformed"
    assert "root" not in shown


def test_what_a_policy_may_write_in_calc_is_only_computed() -> None:
    task = token_task("calc")
    assert isinstance(task, EnvironmentTask)
    words, prompt = task.vocabulary, task.held_out()[0].tolist()

    def call(expression: str) -> str:
        said = [words.index(token) for token in f"?{expression};"]
        return "".join(words[token] for token in task.reply(prompt, [], said).observed)

    assert call("12*34") == "408"
    assert call("7-9") == "-2"
    assert {call(text) for text in ("9**9", "1/0", "7/2", "))((", "()", "", "1:2", "1=1")} == {"!"}
