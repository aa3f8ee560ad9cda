"""calc as text: what a turn is, what it earns, and demonstrations that call before they answer."""

import hf_models
import pytest

from vcpo_bench.bench.policies.hf.create import character_tokenizer
from vcpo_bench.bench.sandbox import Ended
from vcpo_bench.bench.tasks import calc
from vcpo_bench.bench.tasks.calc import printed
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.bench.tasks.text import calc_text, text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.records.step_facts import EPISODE_FACTS


class FakeSandbox:
    """Prints what `print` in this process would, for programs of the tests only."""

    def run(self, program: str) -> Ended:
        known = {"print(12*34)": "408\n", "print(99*99*99)": "970299\n", "print(1-5)": "-4\n", "print(7/2)": "3.5\n"}
        known |= {f"print({one}{sign}{two})": f"{one * two if sign == '*' else one + two}\n"
                  for one in range(10, 100) for two in range(10, 100) for sign in "+*"}  # fmt: skip
        return Ended("ok", known[program]) if program in known else Ended("error", "SyntaxError")


@pytest.fixture(autouse=True)
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calc, "python_sandbox", FakeSandbox)
    monkeypatch.setattr(calc_text, "check_installed", lambda: None)


@pytest.fixture(scope="module")
def task() -> BoundTask:
    return BoundTask(text_task("calc-text"), character_tokenizer())


@pytest.mark.parametrize(
    ("text", "kind", "heard"),
    [
        ("?12*34;", "call", "408"),
        ("?1-5;\n", "call", "-4"),  # a token may reach beyond the end of a call
        ("?99*99*99;", "malformed", "!"),
        ("?7/2;", "malformed", "!"),
        ("?12*;", "malformed", "!"),
        ("?;", "malformed", "!"),
        ("?print(1);", "malformed", "!"),
        ("12*34;", "void", "!"),
        ("=408;", "void", "!"),
    ],
)
def test_what_a_turn_is(text: str, kind: str, heard: str) -> None:
    dialogue = text_task("calc-text").dialogue
    assert dialogue is not None
    assert dialogue.calls(text)
    assert not dialogue.calls(text.partition(";")[0])
    assert dialogue.reply(text) == (kind, heard)


def test_only_an_expression_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calc, "python_sandbox", lambda: pytest.fail("it was run"))
    for text in ("", "a", "1);print(2", "1\n2", "__import__('os')"):
        assert printed(text) == ""


def test_demonstrations_call_and_answer_and_are_what_the_environment_makes_of_them(task: BoundTask) -> None:
    prompts, responses, mask = task.demonstrations(0, 0, 12)
    assert task.reward(prompts, responses, mask).tolist() == [1.0] * 12
    assert task.environment is not None
    for prompt, response, own in zip(prompts.tolist(), responses.tolist(), mask.tolist(), strict=True):
        episode = Episode(task.environment, prompt, task.max_response)
        for token, mine in zip(response, own, strict=True):
            if episode.ended:
                assert not mine
            elif episode.observes:
                assert (episode.observe(), mine) == (token, False)
            else:
                assert mine
                episode.say(token)
        facts = dict(zip(EPISODE_FACTS, episode.facts(), strict=True))
        assert (facts["turns"], facts["calls"], facts["truncated"]) == (2, 1, 0)


def test_the_answer_counts_in_the_last_turn_only(task: BoundTask) -> None:
    item = text_task("calc-text").items("held_out")[0]
    right = text_task("calc-text").demonstration(item)
    assert text_task("calc-text").score(item, right) == 1
    for wrong in (item.answer, f"{right}0", f"{right};", "=", ""):
        assert text_task("calc-text").score(item, wrong) == 0
    assert task.eos == hf_models.EOS
