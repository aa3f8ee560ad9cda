"""calc as text: what a turn is, what it earns, and demonstrations that call before they answer."""

from pathlib import Path
from typing import Any

import hf_models
import pytest
import torch

from vcpo_bench.bench.policies.conversation import respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.create import character_tokenizer
from vcpo_bench.bench.tasks.environment import Kind, Reply, Turn
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.tasks.text.calc_text import CalcText
from vcpo_bench.bench.tasks.text.dialogue import BoundDialogue, Dialogue
from vcpo_bench.bench.trajectories import Responses
from vcpo_bench.records import STEPS_FILE
from vcpo_bench.records.step_facts import EPISODE_FACTS


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
        ("?8/2;", "call", "4"),
        ("?2**3;", "malformed", "!"),
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


class Talkative(Dialogue):
    """Replies to vowels and digits, so that a model which writes at random has many turns."""

    marks = ""
    turn_limit = 50  # type: ignore[assignment]

    def calls(self, text: str) -> bool:
        return text[-1:] in tuple("aeiou0123456789")

    def reply(self, text: str) -> tuple[Kind, str]:
        return "call", "(yes)"

    def answered(self, text: str) -> bool:
        return False


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CalcText, "dialogue", property(lambda _: Talkative()))


def ids(text: str) -> list[int]:
    return list(character_tokenizer()(text, add_special_tokens=False)["input_ids"])


def test_a_token_that_reaches_beyond_the_call_stays_whole() -> None:
    """A tokenizer may have a token such as ";\\n"; it is neither cut nor encoded again."""

    class Wide:
        eos_token_id, pad_token_id, chat_template = hf_models.EOS, hf_models.PAD, None

        def decode(self, tokens: list[int], **_: Any) -> str:
            return "".join(";\n" if token == 500 else character_tokenizer().decode([token]) for token in tokens)

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": ids(text)}

    environment = BoundDialogue(text_task("calc-text").dialogue, Wide())  # type: ignore[arg-type]
    said = [*ids("?12*34"), 500]
    assert environment.over(said)
    assert not environment.over(said[:-1])
    assert environment.reply((), list[Turn](), said) == Reply("call", tuple(ids("408")))


@pytest.mark.usefixtures("talkative")
def test_samples_are_scored_as_they_were_drawn() -> None:
    """Sampler and learner agree on the tokens that the policy said; what it heard stands in between and has 0."""
    task = BoundTask(text_task("calc-text"), character_tokenizer(), max_response=60)
    policy = hf_models.policy("llama", max_position_embeddings=1024)
    prompts = task.held_out(2)
    uniforms = torch.rand(4, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rollout = respond(policy, task.environment, Draw(prompts, uniforms, task.eos))
    scores = policy.score(Responses(prompts, rollout.responses, rollout.mask))
    torch.testing.assert_close(scores.logp.detach(), rollout.logp, rtol=0, atol=1e-5)
    assert rollout.episodes is not None
    observed = dict(zip(EPISODE_FACTS, rollout.episodes.T.tolist(), strict=True))["observed"]
    assert min(observed) >= 5
    for row, mask, count in zip(rollout.responses, rollout.mask, observed, strict=True):
        length = int(mask.nonzero().max()) + 1
        heard = row[:length][~mask[:length]].tolist()
        assert len(heard) <= count
        assert heard[:5] == ids("(yes)")


@pytest.mark.usefixtures("talkative")
@pytest.mark.parametrize("regime", ["fifo", "inflight"])
def test_a_cell_trains_and_resumes(tmp_path: Path, regime: str) -> None:
    folder = hf_models.save(tmp_path / "model", max_position_embeddings=1024)
    more = {"task": "calc-text", "max_response": 40, "prompts": 2, "responses": 2, "steps": 3, "regime": regime}
    through, first, second = (hf_models.trainer(folder, "vcpo", staleness=1, **more) for _ in range(3))
    first.advance()
    (tmp_path / "kept").mkdir()
    first.save(tmp_path / "kept")
    second.load(tmp_path / "kept")
    for one in (through, second):
        while not one.status:
            one.advance()
    columns = through.recorder.tables[STEPS_FILE].columns
    for name, values in columns.items():
        if not name.startswith("seconds"):
            assert repr(values) == repr(second.recorder.tables[STEPS_FILE].columns[name]), name
    assert min(columns["episode_calls"]) > 1
    assert min(columns["episode_observed"]) > 5
