"""The HTTP sampler against faults a real server does not produce on demand; a real one: tests/integrations."""

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from vllm_server import EOS, FakeServer, serving

from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.engines.in_turns import draw_in_turns
from vcpo_bench.bench.samplers.vllm_engine import over_http as server_module
from vcpo_bench.bench.samplers.vllm_engine.over_http import VllmOverHttp
from vcpo_bench.bench.tasks import Reply, Turn
from vcpo_bench.bench.tasks.environment import Environment
from vcpo_bench.bench.trajectories import Rollout
from vcpo_bench.errors import UsageError

PROMPTS = torch.tensor([[0, 5, 6], [0, 0, 7]])  # 0 is padding
UNIFORMS = torch.rand(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class TinyPolicy(nn.Module):
    """What a sampler needs of a language model: padding, and parameters with a tied head."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.network = nn.Module()
        self.network.embed = nn.Embedding(8, 4)
        self.network.head = nn.Linear(4, 8, bias=False)
        if tied:
            self.network.head.weight = self.network.embed.weight

    def real(self, prompts: Tensor) -> Tensor:
        return (prompts != 0).cummax(1).values


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as running:
        yield running


OPEN: list[VllmOverHttp] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def sampler(server: FakeServer, expression: str = "vllm-server", seconds: float = 5.0, tied: bool = False) -> Any:
    policy: Any = TinyPolicy(tied)
    asked: Any = SAMPLERS.parse(expression)
    found = VllmOverHttp(policy, server.url, asked.weights, asked.pause, patience=0.5, seconds=seconds)
    OPEN.append(found)
    return found


def push(found: VllmOverHttp, version: int) -> None:
    found.set_weights(found._policy.named_parameters(), version)


def expected(seeds: Tensor) -> list[list[int]]:
    return [[2 + (int(seed * 2**53) + place) % 7 for place in range(6)] for seed in seeds.tolist()]


def test_tokens_log_probabilities_and_versions_come_back_in_order(server: FakeServer) -> None:
    found = sampler(server)
    push(found, 3)
    rollout = found.generate(PROMPTS, UNIFORMS, EOS)
    assert rollout.responses.tolist() == expected(UNIFORMS[:, 0])
    assert torch.allclose(rollout.logp, -rollout.responses / 10)
    assert rollout.mask.all()
    assert (rollout.version == 3).all()
    assert rollout.entropy.isnan().all()
    asked = server.asked("/inference/v1/generate")
    assert sorted(body["token_ids"] for body in asked) == [[5, 6], [5, 6], [7], [7]]
    assert {body["sampling_params"]["top_p"] for body in asked} == {1.0}


def test_weights_arrive_as_a_file_while_the_server_is_paused(server: FakeServer) -> None:
    found = sampler(server, "vllm-server(pause=abort)", tied=False)
    seen: list[dict[str, Tensor]] = []
    real_post = found.client.post

    def post(path: str, *arguments: Any, **query: Any) -> Any:
        if path == "/collective_rpc":
            seen.append(load_file(arguments[0]["kwargs"]["weights_path"] + "/model.safetensors"))
        return real_post(path, *arguments, **query)

    found.client.post = post
    server.calls.clear()
    push(found, 2)
    paths = [path for path, _ in server.calls]
    assert paths == [
        "/pause?mode=abort&clear_cache=false", "/collective_rpc", "/reset_prefix_cache",
        "/update_weight_version", "/resume",
    ]  # fmt: skip
    assert sorted(seen[0]) == ["embed.weight", "head.weight"]
    assert torch.equal(seen[0]["head.weight"], found._policy.network.head.weight)


def test_salt_changes_with_the_weights(server: FakeServer) -> None:
    found = sampler(server)
    for version in (0, 1):
        push(found, version)
        found.generate(PROMPTS, UNIFORMS, EOS)
    salts = {body["cache_salt"] for body in server.asked("/inference/v1/generate")}
    assert len(salts) == 2


@pytest.mark.parametrize("fault", ["hang", "other", "half", "short"])
def test_a_lost_answer_is_asked_for_again_with_the_same_seed(server: FakeServer, fault: str) -> None:
    found = sampler(server, seconds=0.3)
    push(found, 0)
    server.faults.append(fault)
    rollout = found.generate(PROMPTS, UNIFORMS, EOS)
    assert rollout.responses.tolist() == expected(UNIFORMS[:, 0])
    assert len(server.asked("/inference/v1/generate")) == 5
    assert len(found.events) == 1
    assert found.events[0].startswith("sampler_answer_lost: ")


def test_a_server_that_never_answers_well_ends_in_a_named_event(server: FakeServer) -> None:
    found = sampler(server)
    push(found, 0)
    server.faults.extend(["short"] * 100)
    with pytest.raises(RuntimeError, match=r"^sampler_gave_no_answer: 4 times, the last time: 2 of 6 tokens"):
        found.generate(PROMPTS, UNIFORMS, EOS)


def test_missing_log_probabilities_become_nan_which_the_learner_guards(server: FakeServer) -> None:
    found = sampler(server)
    push(found, 0)
    server.faults.append("mute")
    rollout = found.generate(PROMPTS[:1], UNIFORMS[:1], EOS)
    assert rollout.logp.isnan().all()
    assert rollout.mask.all()


def test_what_was_aborted_goes_on_under_the_new_weights(server: FakeServer) -> None:
    found = sampler(server, "vllm-server(pause=abort)")
    push(found, 0)
    server.faults.append("abort")
    original = server.draw

    def draw(body: dict[str, Any], fault: str) -> dict[str, Any]:
        answer = original(body, fault)
        if fault == "abort":
            server.version = "1"
        return answer

    server.draw = draw  # type: ignore[method-assign]
    rollout = found.generate(PROMPTS[:1], UNIFORMS[:1], EOS)
    assert rollout.version is not None
    assert rollout.version.tolist() == [[0, 0, 1, 1, 1, 1]]
    second = server.asked("/inference/v1/generate")[1]
    assert second["token_ids"] == [5, 6, *rollout.responses[0, :2].tolist()]
    assert second["sampling_params"]["max_tokens"] == 4


def test_a_server_that_starts_again_gets_the_present_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTIONS", 1)
    with serving() as first:
        found = sampler(first, seconds=1.0)
        push(found, 4)
        port = first.server_port
    found._patience = 5.0
    again: list[FakeServer] = []
    done = threading.Event()

    def restart() -> None:
        with serving(port=port) as second:
            again.append(second)
            done.wait(20)

    thread = threading.Timer(0.2, restart)
    thread.start()
    rollout = found.generate(PROMPTS, UNIFORMS, EOS)
    done.set()
    thread.join()
    assert (rollout.version == 4).all()
    assert len(again[0].asked("/collective_rpc")) == 1


def test_a_server_that_stays_away_has_died() -> None:
    with serving() as server:
        found = sampler(server)
        push(found, 0)
    with pytest.raises(RuntimeError, match=r"^sampler_died: "):
        found.generate(PROMPTS, UNIFORMS, EOS)
    assert found.health().startswith("sampler_died: ")
    with pytest.raises(RuntimeError, match=r"^sampler_died: .* away for more than 0.5 s"):
        push(found, 1)


def test_parts_of_a_response_continue_what_was_drawn(server: FakeServer) -> None:
    found = sampler(server)
    push(found, 0)
    rollout = Rollout.empty(4, 6, EOS)
    rollout.mask[3, 1:] = False  # the last row has ended
    for positions in (range(2), range(2, 6)):
        found.advance([Segment(0, PROMPTS, UNIFORMS, rollout, positions)], EOS, False)
    asked = server.asked("/inference/v1/generate")
    assert len(asked) == 7
    assert math.isclose(float(rollout.logp[0, 5]), -float(rollout.responses[0, 5]) / 10, rel_tol=1e-6)
    assert {len(body["token_ids"]) for body in asked[4:]} == {3, 4}


@pytest.mark.parametrize(
    ("settings", "expression", "tied", "message"),
    [
        (
            {"logprobs_mode": "raw_logprobs"},
            "vllm-server",
            False,
            "is raw_logprobs; start it with --logprobs-mode",
        ),
        ({"generation_config": "auto"}, "vllm-server", False, "start it with --generation-config vllm"),
        ({"release": "0.23.1"}, "vllm-server", False, "too old"),
        ({"release": "0.26.0"}, "vllm-server(pause=keep)", False, "pause=wait or pause=abort"),
        ({"forbids": True}, "vllm-server", False, "start it with --enable-scale-out"),
        ({}, "vllm-server", True, "tie_word_embeddings=False"),
    ],
)
def test_a_server_that_would_corrupt_ratios_is_refused(
    settings: dict[str, Any], expression: str, tied: bool, message: str
) -> None:
    with serving(**settings) as server, pytest.raises(UsageError, match=message):
        sampler(server, expression, tied=tied)


def test_no_server() -> None:
    policy: Any = TinyPolicy()
    with pytest.raises(UsageError, match="--url"):
        VllmOverHttp(policy, "", "disk", "wait")
    with pytest.raises(UsageError, match="no vLLM server"):
        VllmOverHttp(policy, "http://127.0.0.1:9", "disk", "wait", patience=0.1)


class Parrot(Environment):
    """A turn ends with a 5 or a 6; a 5 is answered by 7 7, a 6 ends the episode."""

    turn_limit = 9

    def over(self, said: Sequence[int]) -> bool:
        return said[-1] in (5, 6)

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        return Reply("call", (7, 7)) if said[-1] == 5 else Reply("answer")


def played(noise: list[float]) -> tuple[list[int], list[bool], list[tuple[int, int]]]:
    """Tokens of an episode, whether the policy said each, and place and seed of each request."""
    tokens, own, asked = list[int](), list[bool](), list[tuple[int, int]]()
    while len(tokens) < len(noise):
        asked.append((len(tokens), int(noise[len(tokens)] * 2**53)))
        turn = [2 + (asked[-1][1] + later) % 7 for later in range(len(noise) - len(tokens))]
        said = turn[: 1 + min(turn.index(end) if end in turn else len(turn) for end in (5, 6))]
        heard = [7, 7] if said[-1] == 5 else []
        tokens, own = tokens + said + heard, own + [True] * len(said) + [False] * len(heard)
        if not heard:
            break
    return tokens[: len(noise)], own[: len(noise)], asked


@pytest.mark.parametrize("faults", [[], ["short", "", "half"], ["other"] * 4])
def test_turns_are_cut_at_their_end_and_lost_answers_are_asked_for_again(server: FakeServer, faults: list[str]) -> None:
    found = sampler(server)
    push(found, 3)
    server.faults.extend(faults)
    uniforms = torch.rand(4, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rollout = draw_in_turns(found, Parrot(), PROMPTS, uniforms, EOS)
    requests = set()
    for row, noise in enumerate(uniforms.tolist()):
        tokens, own, asked = played(noise)
        requests |= {(*[[5, 6], [7]][row // 2], *tokens[:place], seed) for place, seed in asked}
        assert rollout.responses[row, : len(tokens)].tolist() == tokens
        assert rollout.mask[row].tolist() == own + [False] * (24 - len(own))
    sent = server.asked("/inference/v1/generate")
    assert {(*body["token_ids"], body["sampling_params"]["seed"]) for body in sent} == requests
    assert len(sent) == len(requests) + len([fault for fault in faults if fault]) > 10
    assert (rollout.version[rollout.mask] == 3).all()
    assert torch.allclose(rollout.logp, torch.where(rollout.mask, -rollout.responses / 10, 0.0))
    assert bool(found.events) == bool(faults)
