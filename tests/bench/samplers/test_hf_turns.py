"""Responses in turns from an engine: the same tokens, masks and counts as the torch sampler's, request by request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import hf_models
import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.conversation import Conversation, respond
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.create import character_tokenizer
from vcpo_bench.bench.samplers.catalog import SAMPLERS, SamplingJob
from vcpo_bench.bench.samplers.engine_sampler import EngineSampler
from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.engines.in_turns import draw_in_turns
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, Request, seed_of
from vcpo_bench.bench.samplers.vllm_engine.turns import converse, converse_in_rounds, speakers
from vcpo_bench.bench.tasks.environment import Kind
from vcpo_bench.bench.tasks.text.dialogue import BoundDialogue, Dialogue
from vcpo_bench.bench.trajectories import Rollout
from vcpo_bench.errors import UsageError
from vcpo_bench.records.step_facts import EPISODE_FACTS

T = 40
PROMPTS = torch.tensor([[0, 0, 5, 6, 7], [0, 9, 8, 11, 12], [13, 14, 3, 4, 15]])
UNIFORMS = torch.rand(6, T, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LETTERS = "aeiost0123"


class Talkative(Dialogue):
    """Replies to some letters, so that a model that writes anything has many turns of three kinds."""

    marks = ""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    @property
    def turn_limit(self) -> int:
        return self.turns

    def calls(self, text: str) -> bool:
        return text[-1] in LETTERS

    def reply(self, text: str) -> tuple[Kind, str]:
        kinds: tuple[Kind, ...] = ("call", "malformed", "void")
        return kinds[LETTERS.index(text[-1]) % 3], f"({len(text)})"

    def answered(self, text: str) -> bool:
        return "x" in text


class GreedyEngine:
    """An engine that draws the most likely token of a policy, and knows no context but that of its request.

    Attributes:
        seen: Requests in order.
        version: Of its weights.
    """

    def __init__(self, policy: Any) -> None:
        self.policy, self.version, self.seen = policy, 0, list[Request]()
        self.flying: dict[str, tuple[Request, list[int], list[float]]] = {}

    @property
    def idle(self) -> bool:
        return not self.flying

    def weight_version(self) -> int | None:
        return self.version

    def begin(self, requests: Sequence[Request]) -> list[str]:
        names = [f"r{len(self.seen) + index}" for index in range(len(requests))]
        self.seen += requests
        self.flying |= {name: (request, [], []) for name, request in zip(names, requests, strict=True)}
        return names

    def step(self, known: Mapping[str, int]) -> dict[str, Answer]:
        found = {}
        for name, (request, tokens, logp) in list(self.flying.items()):
            with torch.no_grad():
                logits = self.policy.network(input_ids=torch.tensor([request.prompt + tokens])).logits[0, -1]
            tokens.append(int(logits.argmax()))
            logp.append(float(logits.log_softmax(0).max()))
            first = known.get(name, 0)
            found[name] = Answer(tokens[first:], logp[first:])
            if tokens[-1] == request.eos or len(tokens) == request.length:
                del self.flying[name]
        return found

    def abandon(self, names: Iterable[str]) -> None:
        for name in names:
            self.flying.pop(name, None)

    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        assert not keep
        engine: Any = self
        converse(engine, speakers(segments, lambda prompts: (prompts != 0).cumsum(1) > 0, eos), self.version)


class WholeAnswers(GreedyEngine):
    """The same engine behind whole answers, as a server gives them."""

    def draw(self, requests: Sequence[Request]) -> list[Answer]:
        found = {name: Answer([], []) for name in self.begin(requests)}
        while not self.idle:
            for name, answer in self.step({name: len(one.tokens) for name, one in found.items()}).items():
                found[name] = Answer(found[name].tokens + answer.tokens, found[name].logp + answer.logp)
        return list(found.values())

    def advance(self, segments: Sequence[Segment], eos: int | None, keep: bool) -> None:
        assert not keep
        talkers = speakers(segments, lambda prompts: (prompts != 0).cumsum(1) > 0, eos)
        converse_in_rounds(self.draw, talkers, lambda: self.version)


@pytest.fixture(scope="module")
def policy() -> Any:
    return hf_models.policy("llama", max_position_embeddings=256)


def environment(turns: int = 50) -> BoundDialogue:
    return BoundDialogue(Talkative(turns), character_tokenizer())


def drawn(
    policy: Any, turns: int, length: int, kind: type[GreedyEngine] = GreedyEngine
) -> tuple[Rollout, GreedyEngine]:
    engine: Any = kind(policy)
    return draw_in_turns(engine, environment(turns), PROMPTS, UNIFORMS[:, :length], hf_models.EOS), engine


def same(found: Rollout, expected: Rollout) -> None:
    assert torch.equal(found.mask, expected.mask)
    reached = found.mask.long().flip(1).cummax(1).values.flip(1).bool()  # all that came before a token of the policy
    assert torch.equal(found.responses[reached], expected.responses[reached])
    torch.testing.assert_close(found.logp, expected.logp * expected.mask, rtol=0, atol=1e-5)
    assert found.episodes is not None
    assert expected.episodes is not None
    assert found.episodes.tolist() == expected.episodes.tolist()


@pytest.mark.parametrize("kind", [GreedyEngine, WholeAnswers])
@pytest.mark.parametrize(("turns", "length"), [(50, T), (50, 9), (3, T), (1, T)])
def test_it_records_what_the_torch_sampler_records(
    policy: Any, turns: int, length: int, kind: type[GreedyEngine]
) -> None:
    greedy = torch.ones(6, dtype=torch.bool)
    expected = respond(policy, environment(turns), Draw(PROMPTS, UNIFORMS[:, :length], hf_models.EOS, greedy))
    found, engine = drawn(policy, turns, length, kind)
    same(found, expected)
    assert found.entropy.isnan().equal(found.mask)
    assert not engine.flying
    facts = dict(zip(EPISODE_FACTS, found.episodes.sum(0).tolist(), strict=True))  # type: ignore[union-attr]
    assert facts["calls"] + facts["malformed_calls"] + facts["void_turns"] >= 3
    assert facts["truncated"] if turns == 50 else facts["turn_limited"]


@pytest.mark.parametrize("kind", [GreedyEngine, WholeAnswers])
def test_every_turn_continues_the_very_tokens_with_a_seed_of_its_own(policy: Any, kind: type[GreedyEngine]) -> None:
    found, engine = drawn(policy, 50, T, kind)
    starts = [(row, place) for row in range(6) for place in range(T) if begins(found.mask[row], place)]
    asked = {tuple(request.prompt): request for request in engine.seen}
    for row, place in starts:
        prompt = PROMPTS[row // 2][PROMPTS[row // 2] != 0].tolist() + found.responses[row, :place].tolist()
        request = asked[tuple(prompt)]
        assert request.length == T - place
    seeds = {seed_of(float(UNIFORMS[row, place])) for row, place in starts}
    assert seeds == {request.seed for request in engine.seen if request.seed in seeds}
    assert len(engine.seen) >= len(starts) > 12


def begins(mask: Tensor, place: int) -> bool:
    """Whether a token of the policy follows one of the environment, or nothing."""
    return bool(mask[place]) and (place == 0 or not bool(mask[place - 1]))


@pytest.mark.parametrize("kind", [GreedyEngine, WholeAnswers])
def test_in_parts_under_changing_weights_it_draws_the_same_tokens_with_their_versions(
    policy: Any, kind: type[GreedyEngine]
) -> None:
    whole, _ = drawn(policy, 50, T)
    engine, talk = kind(policy), Conversation(environment(), PROMPTS, 6, T)
    rollout, stamps = Rollout.empty(6, T, hf_models.EOS), torch.zeros(6, T, dtype=torch.int64)
    rollout = Rollout(rollout.responses, rollout.logp, rollout.mask, rollout.entropy, stamps)
    for engine.version, start in enumerate(range(0, T, 7)):
        part = Segment(0, PROMPTS, UNIFORMS, rollout, range(start, min(start + 7, T)), talk)
        engine.advance([part], hf_models.EOS, keep=False)
    same(Rollout(rollout.responses, rollout.logp, rollout.mask, rollout.entropy, episodes=talk.facts()), whole)
    expected = (torch.arange(T) // 7).expand(6, T)
    assert torch.equal(stamps[rollout.mask], expected[rollout.mask])


def test_an_engine_that_loses_a_request_is_an_error_and_is_left_empty(policy: Any) -> None:
    class Forgetful(GreedyEngine):
        def step(self, known: Mapping[str, int]) -> dict[str, Answer]:
            self.flying.clear()
            return {}

    engine: Any = Forgetful(policy)
    with pytest.raises(RuntimeError, match=r"^sampler_gave_no_answer: the engine lost 6 requests"):
        draw_in_turns(engine, environment(), PROMPTS, UNIFORMS, hf_models.EOS)


def test_an_error_of_the_environment_leaves_nothing_in_the_engine(policy: Any) -> None:
    class Broken(Talkative):
        def reply(self, text: str) -> tuple[Kind, str]:
            raise OSError("no connection")

    engine: Any = GreedyEngine(policy)
    with pytest.raises(OSError, match="no connection"):
        draw_in_turns(engine, BoundDialogue(Broken(9), character_tokenizer()), PROMPTS, UNIFORMS, hf_models.EOS)
    assert not engine.flying


class OneTurn(EngineSampler):
    """An engine that cannot be interrupted."""

    name = "one-turn"

    def check_installed(self) -> None:
        """Nothing is missing."""

    def start(self, policy: Any, job: SamplingJob) -> Any:
        raise AssertionError("it was refused before")


@pytest.mark.parametrize(
    ("sampler", "keeps", "says"),
    [
        (OneTurn(), False, "use --sampler vllm, vllm-server or torch"),
        (SAMPLERS.parse("vllm"), True, r"use inflight\(cache=recompute\)"),
        (SAMPLERS.parse("vllm-server"), True, r"use inflight\(cache=recompute\)"),
    ],
)
def test_what_an_engine_cannot_do_in_turns_is_refused(policy: Any, sampler: Any, keeps: bool, says: str) -> None:
    job = SamplingJob(5, T, 6, adapters=False, publish_every=1, keeps_cache=keeps, regime="inflight", in_turns=True)
    with pytest.raises(UsageError, match=says):
        sampler.open(policy, job)
