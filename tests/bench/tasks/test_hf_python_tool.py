"""Language models that run Python: turns, token-exact continuation, masks, rewards, and training on local files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from vcpo_bench.bench.policies.conversation import Conversation, respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.create import character_tokenizer
from vcpo_bench.bench.sandbox import Ended
from vcpo_bench.bench.tasks.environment import Kind, Turn
from vcpo_bench.bench.tasks.text import python_tool, text_task
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.tasks.text.dialogue import Dialogue
from vcpo_bench.bench.tasks.text.python_tool import cut
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.errors import UsageError
from vcpo_bench.records import STEPS_FILE
from vcpo_bench.records.step_facts import EPISODE_FACTS

CALL = "Let me see.\n```python\nprint(6 * 7)\n```"
HEARD = "\nCode execution result: 42\n"


class FakeSandbox:
    """Prints 42, and fails where a program says so."""

    def run(self, program: str) -> Ended:
        return Ended("error", "ZeroDivisionError") if "1 / 0" in program else Ended("ok", "42\n")


@pytest.fixture(autouse=True)
def sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_tool, "python_sandbox", FakeSandbox)
    monkeypatch.setattr(python_tool, "check_installed", lambda: None)


def generated(kind: str, count: int) -> Iterator[dict[str, str]]:
    """Problems in the layout of the published files."""
    for one, two in np.random.default_rng(0).integers(1, 50, (count, 2)).tolist():
        asked = f"Ann has {one} pens and buys {two} more. How many?"
        if kind == "gsm8k":
            yield {"question": asked, "answer": f"{one}+{two}=<<{one}+{two}={one + two}>>{one + two}\n#### {one + two}"}
        else:
            yield {"problem": asked, "level": "Level 1", "solution": f"The sum is $\\boxed{{{one + two}}}$."}


class Talkative(Dialogue):
    """Replies to every `e` or `a`, so that a model which writes at random has many turns."""

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
    monkeypatch.setattr(python_tool.PythonTool, "dialogue", property(lambda _: Talkative()))


@pytest.fixture(params=["gsm8k", "math"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An expression of each task on a local file: JSON lines, or Parquet."""
    rows = list(generated(request.param, 30))
    if request.param == "gsm8k":
        file = tmp_path / "train.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
    else:
        file = tmp_path / "train.parquet"
        pq.write_table(pa.Table.from_pylist(rows), file)
    return f"{request.param}-python(data={file})"


def bound(expression: str, **settings: Any) -> BoundTask:
    return BoundTask(text_task(expression), character_tokenizer(), **{"max_response": 200} | settings)


def ids(text: str) -> list[int]:
    return list(character_tokenizer()(text, add_special_tokens=False)["input_ids"])


def spoken(task: BoundTask, *turns: str, end: bool = True) -> tuple[Rollout, dict[str, int]]:
    """A response whose turns the policy says, token for token, with what the environment makes of it."""
    prompts = task.held_out(1)
    (episode,) = Conversation(task.environment, prompts, 1, task.max_response).episodes  # type: ignore[arg-type]
    said = [token for turn in turns for token in ids(turn)] + ([hf_models.EOS] if end else [])
    rollout = Rollout.empty(1, task.max_response, None)
    rollout.mask.fill_(False)
    place = 0
    while not episode.ended and (said or episode.observes):
        own = not episode.observes
        token = said.pop(0) if own else episode.observe()
        if own:
            episode.say(token)
        rollout.responses[0, place], rollout.mask[0, place] = token, own
        place += 1
    return rollout, dict(zip(EPISODE_FACTS, episode.facts(), strict=True))


def final(task: BoundTask) -> str:
    """The right answer to the first held-out item."""
    answer = task.source.items("held_out")[0].answer
    return f"#### {answer}" if task.source.name.startswith("gsm8k") else f"\\boxed{{{answer}}}"


def test_output_is_inserted_after_the_block_and_the_policy_goes_on(source: str) -> None:
    task = bound(source)
    rollout, facts = spoken(task, CALL, final(task))
    assert (facts["turns"], facts["calls"], facts["observed"]) == (2, 1, len(ids(HEARD)))
    assert float(task.reward(task.held_out(1), rollout.responses, rollout.mask)) == 1.0
    own = rollout.responses[rollout.mask].tolist()
    assert own == [*ids(CALL), *ids(final(task)), hf_models.EOS]  # its own tokens, none encoded again
    assert f"{CALL}{HEARD}{final(task)}" in task.render(task.held_out(1)[0], rollout.responses[0], rollout.mask[0])


def test_only_an_answer_of_the_last_turn_counts(source: str) -> None:
    task = bound(source)

    def earned(*turns: str, end: bool = True) -> float:
        rollout, _ = spoken(task, *turns, end=end)
        return float(task.reward(task.held_out(1), rollout.responses, rollout.mask))

    right = final(task)
    assert earned(right) == 1.0
    assert earned(f"{right}\n{CALL}", "That is all.") == 0.0
    assert earned(CALL, right, end=False) == 0.0  # cut off
    assert earned(CALL, CALL) == 0.0


def test_turns_are_counted_by_what_they_are(source: str) -> None:
    task = bound(source.replace(")", ",turns=2)"), max_response=400)
    assert spoken(task, "I do not know.")[1]["void_turns"] == 1
    failed = spoken(task, "```py\nprint(1 / 0)\n```", final(task))[1]
    assert (failed["malformed_calls"], failed["calls"], failed["turns"]) == (1, 0, 2)
    limited = spoken(task, CALL, CALL, final(task))[1]
    assert (limited["turns"], limited["turn_limited"]) == (2, 1)
    assert spoken(task, "a" * 400)[1]["truncated"] == 1


def test_a_turn_ends_where_its_block_ends() -> None:
    dialogue = text_task("gsm8k-python(data=sample)").dialogue
    assert dialogue is not None
    assert dialogue.calls("```\n1\n```")
    for text in ("```python\nprint(1)", "``` print(1) ```", "no block", "```js\n1\n```"):
        assert not dialogue.calls(text)


def test_a_token_that_reaches_beyond_the_block_stays_whole(source: str) -> None:
    """A tokenizer may have a token such as "```\\n"; it is neither cut nor encoded again."""
    task = bound(source)

    class Wide:
        eos_token_id, pad_token_id, chat_template = hf_models.EOS, hf_models.PAD, None

        def decode(self, tokens: list[int], **_: Any) -> str:
            return "".join("```\n" if token == 500 else task.tokenizer.decode([token]) for token in tokens)

        def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
            return {"input_ids": ids(text)}

    environment = type(task.environment)(task.source.dialogue, Wide())  # type: ignore[call-arg, misc]
    said = [*ids("```python\nprint(1)\n"), 500]
    assert environment.over(said)
    assert not environment.over(said[:-1])
    reply = environment.reply((), list[Turn](), said)
    assert reply.kind == "call"
    assert reply.observed == tuple(ids(HEARD))


def test_long_output_keeps_both_ends() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("0123456789" * 10, 16) == "0123456...456789"
    assert len(cut("x" * 999, 256)) == 256


@pytest.mark.usefixtures("talkative")
def test_samples_are_scored_as_they_were_drawn(source: str) -> None:
    """Sampler and learner agree on the tokens that the policy said; what it heard stands in between and has 0."""
    task = bound(source, max_response=60)
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
def test_a_cell_trains_and_resumes(source: str, tmp_path: Path, regime: str) -> None:
    folder = hf_models.save(tmp_path / "model", max_position_embeddings=1024)
    more = {"task": source, "max_response": 40, "prompts": 2, "responses": 2, "steps": 3, "regime": regime}
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


def test_missing_files_are_one_line(tmp_path: Path) -> None:
    for name in ("gsm8k-python", "math-python"):
        with pytest.raises(UsageError) as raised:
            text_task(f"{name}(data={tmp_path / 'nothing.jsonl'})")
        assert "nothing.jsonl" in str(raised.value)
        assert "\n" not in str(raised.value)
