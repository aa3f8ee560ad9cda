"""Scorers that evaluate a model's answer run where it can only compute; a package that does just that stands in."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.scoring import confined
from vcpo_bench.bench.tasks.text.scoring.confined import ConfinedJudge
from vcpo_bench.errors import UsageError

PACKAGE = """
import os

class Set:
    def __getitem__(self, index):
        return {"question": "Two?", "answer": "2", "metadata": {}}

    def score_answer(self, answer, entry):
        print("packages print")
        if answer == "environment":
            return float("SECRET" in os.environ)
        return float(eval(answer) == eval(entry["answer"]))

def create_dataset(name, size, seed):
    return Set()

class factory:
    DATASETS = {"any": Set}
"""

ENTRY = {"answer": "2"}

PAYLOADS = [
    "open({file!r}, 'w').write('x') and 2",
    "__import__('os').system('touch ' + {file!r}) or 2",
    "__import__('pathlib').Path({file!r}).touch() or 2",
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0](['touch', {file!r}]) and 2",
    "exec('open({file!r}, \"w\")') or 2",
    "(lambda: open({file!r}, 'w'))() and 2",
    "print.__self__.open({file!r}, 'w') and 2",
    "__import__('socket').socket() and 2",
    "globals() and 2",
    "getattr(1, 'real') + 1",
]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConfinedJudge]:
    (tmp_path / "reasoning_gym.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    made = ConfinedJudge("reasoning-gym", "any", seconds=0.3)
    yield made
    made.close()
    sys.modules.pop("reasoning_gym", None)


def test_answers_are_judged(judge: ConfinedJudge) -> None:
    assert [judge.right(answer, ENTRY) for answer in ("2", "1 + 1", "[2][0]", "3", "1 +", "")] == [True] * 3 + [
        False
    ] * 3


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_answer_that_does_more_than_compute_is_wrong_and_does_nothing(
    judge: ConfinedJudge, tmp_path: Path, payload: str
) -> None:
    file = tmp_path / "pwned"
    assert not judge.right(payload.format(file=str(file)), ENTRY)
    assert not file.exists()
    assert judge.right("2", ENTRY)  # and the next is judged as ever


@pytest.mark.parametrize("answer", ["9**9**9**9", "'x' * 10**11 and 2", "(" * 5000, "1" + "+1" * 100_000])
def test_an_answer_without_end_is_wrong_in_bounded_time(judge: ConfinedJudge, answer: str) -> None:
    judge.right("2", ENTRY)
    began = time.process_time(), time.monotonic()
    assert not judge.right(answer, ENTRY)
    assert time.monotonic() - began[1] < 20
    assert judge.right("2", ENTRY)


def test_secrets_of_the_environment_stay_here(judge: ConfinedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "token")
    assert not judge.right("environment", ENTRY)


def test_a_process_that_died_is_replaced_and_none_is_left(judge: ConfinedJudge) -> None:
    judge.right("2", ENTRY)
    process = judge._process
    assert process is not None
    process.kill()
    assert not judge.right("2", ENTRY)  # the question it did not answer
    assert judge.right("2", ENTRY)
    judge.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_package_that_cannot_be_loaded_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"cannot be used to judge answers \(ModuleNotFoundError: .*math_verify"):
        ConfinedJudge("math-verify").right("1", "1")


def test_the_task_judges_there(judge: ConfinedJudge, tmp_path: Path) -> None:
    task = text_task("reasoning-gym(any)")
    item = Item("Two?", "2", {"entry": ENTRY})
    file = tmp_path / "pwned"
    assert task.score(item, task.demonstration(item)) == 1
    assert task.score(item, f"<answer>{PAYLOADS[0].format(file=str(file))}</answer>") == 0
    assert not file.exists()
    confined._judge.cache_clear()
