"""What the in-process sampler asks of an engine and makes of its answers; real engines are in tests/integrations."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.vllm_engine import in_process as sampler_module
from vcpo_bench.bench.samplers.vllm_engine.in_process import VllmInProcess
from vcpo_bench.bench.samplers.vllm_engine.messages import (
    Answer,
    BrokenAnswer,
    Request,
    ask,
    check,
    seed_of,
    stamps,
    whole,
)
from vcpo_bench.bench.samplers.vllm_engine.weight_names import WeightNames
from vcpo_bench.bench.trajectories import Rollout

EOS, T = 1, 6
PROMPTS = torch.tensor([[0, 5, 6], [0, 0, 7]])  # 0 is padding
UNIFORMS = torch.rand(4, T, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
REAL = PROMPTS != 0


class StepEngine:
    """One token of everything in flight per step; the token tells the version of the weights that drew it.

    Attributes:
        ends: By seed, how many tokens until the end.
        room: Requests that get a token in one step.
    """

    def __init__(self) -> None:
        self.version, self.room = 0, 10**6
        self.flying: dict[str, tuple[Request, list[int]]] = {}
        self.ends: dict[int, int] = {}
        self.seen: list[Request] = []

    def push(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        self.version, self.names = version, [name for name, _ in weights]

    def _token(self, request: Request, count: int) -> int:
        return EOS if self.ends.get(request.seed) == count + 1 else 10 + self.version

    def draw(self, requests: Sequence[Request]) -> list[Answer]:
        self.seen += requests
        found = []
        for request in requests:
            tokens: list[int] = []
            while len(tokens) < request.length and EOS not in tokens:
                tokens.append(self._token(request, len(tokens)))
            found.append(Answer(tokens, [-0.5] * len(tokens)))
        return found

    def begin(self, requests: Sequence[Request]) -> list[str]:
        self.seen += requests
        names = [f"r{len(self.seen)}-{i}" for i in range(len(requests))]
        self.flying |= {name: (request, []) for name, request in zip(names, requests, strict=True)}
        return names

    def step(self) -> dict[str, Answer]:
        found = {}
        for name, (request, tokens) in list(self.flying.items())[: self.room]:
            tokens.append(self._token(request, len(tokens)))
            found[name] = Answer(list(tokens), [-0.5] * len(tokens))
            if tokens[-1] == EOS or len(tokens) == request.length:
                del self.flying[name]
        return found

    def abandon(self, names: Iterable[str]) -> None:
        for name in names:
            self.flying.pop(name, None)


class TinyPolicy(nn.Module):
    """A language model as far as a sampler looks at one."""

    dtype = torch.float32

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Module()
        self.network.config = None  # type: ignore[assignment]
        self.network.embed = nn.Embedding(8, 4)
        self.network.head = nn.Linear(4, 8, bias=False)
        self.network.head.weight = self.network.embed.weight

    def real(self, prompts: Tensor) -> Tensor:
        return prompts != 0


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> StepEngine:
    found = StepEngine()
    monkeypatch.setattr(sampler_module, "open_engine", lambda *_: found)
    return found


def make() -> VllmInProcess:
    policy: Any = TinyPolicy()
    return VllmInProcess(policy, "float32", 3, T, 4, 0.0)


def segment(batch: int, rollout: Rollout, start: int, stop: int) -> Segment:
    return Segment(batch, PROMPTS, UNIFORMS, rollout, range(start, stop))


def test_requests_carry_real_tokens_and_a_seed_of_their_own() -> None:
    found = ask(PROMPTS, REAL, UNIFORMS, EOS, range(T))
    assert [request.prompt for request in found.values()] == [[5, 6], [5, 6], [7], [7]]
    assert [request.seed for request in found.values()] == [seed_of(float(u)) for u in UNIFORMS[:, 0]]
    assert len({request.seed for request in found.values()}) == 4


def test_a_tied_head_is_pushed_under_both_names(engine: StepEngine) -> None:
    found = make()
    policy = found._policy
    found.set_weights(policy.named_parameters(), 2)
    assert sorted(engine.names) == ["embed.weight", "head.weight"]
    assert (found.version, engine.version) == (2, 2)
    assert WeightNames(policy).tied


def test_whole_responses(engine: StepEngine) -> None:
    found = make()
    engine.ends = {seed_of(float(UNIFORMS[1, 0])): 3}
    rollout = found.generate(PROMPTS, UNIFORMS, EOS)
    assert rollout.responses[0].tolist() == [10] * T
    assert rollout.responses[1].tolist() == [10, 10, EOS, EOS, EOS, EOS]
    assert rollout.mask.sum(1).tolist() == [T, 3, T, T]
    assert (rollout.logp == torch.where(rollout.mask, -0.5, 0.0)).all()
    assert (rollout.entropy.isnan() == rollout.mask).all()


def test_batches_in_flight_grow_in_step_under_changing_weights(engine: StepEngine) -> None:
    """The plan of inflight at lag 2 with two tokens per change, from the fill on."""
    found = make()
    drafts = [Rollout.empty(4, T, EOS) for _ in range(4)]
    found.advance([segment(0, drafts[0], 0, 6), segment(1, drafts[1], 0, 4), segment(2, drafts[2], 0, 2)], EOS, True)
    assert [[int((d.responses[0] == 10).sum()) for d in drafts[:3]]] == [[6, 4, 2]]
    found.set_weights([], 1)
    found.advance([segment(1, drafts[1], 4, 6), segment(2, drafts[2], 2, 4), segment(3, drafts[3], 0, 2)], EOS, True)
    found.set_weights([], 2)
    found.advance([segment(2, drafts[2], 4, 6), segment(3, drafts[3], 2, 4)], EOS, True)
    assert drafts[1].responses[2].tolist() == [10, 10, 10, 10, 11, 11]
    assert drafts[2].responses[3].tolist() == [10, 10, 11, 11, 12, 12]
    assert drafts[3].responses[0, :4].tolist() == [11, 11, 12, 12]
    assert len(engine.seen) == 16  # each response was asked for once


def test_responses_that_end_in_flight_stay_ended(engine: StepEngine) -> None:
    found = make()
    engine.ends = {seed_of(float(UNIFORMS[row, 0])): end for row, end in ((0, 1), (1, 2), (2, 5))}
    rollout = Rollout.empty(4, T, EOS)
    for start in (0, 2, 4):
        found.advance([segment(0, rollout, start, start + 2)], EOS, True)
    assert rollout.mask.sum(1).tolist() == [1, 2, 5, 6]
    assert not engine.flying


def test_an_engine_without_room_for_all_is_an_error_that_says_so(engine: StepEngine) -> None:
    found = make()
    engine.room = 3
    with pytest.raises(RuntimeError, match=r"^sampler_out_of_step: 0 tokens .*memory=GIB"):
        found.advance([segment(0, Rollout.empty(4, T, EOS), 0, 2)], EOS, True)


def test_read_again_by_the_present_weights(engine: StepEngine) -> None:
    found = make()
    rollout = Rollout.empty(4, T, EOS)
    engine.ends = {seed_of(float(UNIFORMS[3, 0])): 2}
    found.advance([segment(0, rollout, 0, 4)], EOS, False)
    found.set_weights([], 1)
    found.advance([segment(0, rollout, 4, 6)], EOS, False)
    assert rollout.responses[0].tolist() == [10] * 4 + [11] * 2
    assert rollout.mask[3].tolist() == [True] * 2 + [False] * 4
    last = engine.seen[-1]
    assert (last.prompt, last.length, last.seed) == ([7, 10, 10, 10, 10], 2, seed_of(float(UNIFORMS[2, 4])))
    assert len(engine.seen) == 7


def test_after_a_resume_what_was_in_flight_is_read_again(engine: StepEngine) -> None:
    first, rollout = make(), Rollout.empty(4, T, EOS)
    first.advance([segment(0, rollout, 0, 2)], EOS, True)
    first.close()
    assert not engine.flying
    second = make()
    second.set_weights([], 1)
    second.advance([segment(0, rollout, 2, 4)], EOS, True)
    second.advance([segment(0, rollout, 4, 6)], EOS, True)
    assert rollout.responses[1].tolist() == [10, 10, 11, 11, 11, 11]
    assert engine.seen[4].prompt == [5, 6, 10, 10]


REQUEST = Request([1], 4, 0, EOS)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer([], []), "0 tokens"),
        (Answer([5] * 5, [0.0] * 5), "at most 4"),
        (Answer([5, EOS, 5, 5], [0.0] * 4), "after the end"),
        (Answer([5, 5], [0.0] * 2), "the last is not the end"),
        (Answer([5] * 4, [0.0] * 3), "3 log-probabilities"),
        (Answer([5] * 4, [0.0] * 4, [0]), "1 versions"),
    ],
)
def test_answers_that_do_not_fit_are_not_used(answer: Answer, message: str) -> None:
    with pytest.raises(BrokenAnswer, match=message):
        check(REQUEST, answer)


def test_answers_that_fit() -> None:
    for answer in (Answer([5] * 4, [0.0] * 4), Answer([5, EOS], [0.0] * 2, [0, 1]), Answer([EOS], [0.0])):
        assert check(REQUEST, answer) is answer


def test_versions_of_tokens() -> None:
    assert stamps([(3, 0, 2), (4, 2, 5)], 5) == [3, 3, 4, 4, 4]
    for spans, count in (([(3, 0, 2)], 3), ([(3, 1, 3)], 3), ([(3, 0, 2), (4, 1, 3)], 3)):
        with pytest.raises(BrokenAnswer, match="weight versions"):
            stamps(spans, count)
    rollout = whole([Answer([5, EOS], [0.0] * 2, [0, 1]), Answer([5] * 4, [0.0] * 4, [2] * 4)], 4, EOS)
    assert rollout.version is not None
    assert rollout.version.tolist() == [[0, 1, 1, 1], [2, 2, 2, 2]]
