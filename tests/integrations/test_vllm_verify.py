"""A real vLLM engine: each way a push goes wrong is found, clean pushes raise no alarm, and the gap by component."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from vllm_models import TOLERANCE, config, save_model

from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.replay.mismatch import COMPONENTS, attribute, open_setup
from vcpo_bench.bench.replay.verify import Canaries, VersionVerdict
from vcpo_bench.bench.samplers.catalog import SAMPLERS, SamplingJob
from vcpo_bench.bench.samplers.engines.base import InflightEngine
from vcpo_bench.bench.samplers.vllm_engine import engine as local_engine
from vcpo_bench.bench.trajectories import Rollout

T, PROMPT, CLEAN = 8, 40, 60
Weights = Iterable[tuple[str, Tensor]]


class Sampler:
    """A vLLM engine behind the pushes of a trainer; `at` is the push that goes wrong in the others."""

    def __init__(self, engine: InflightEngine, at: int = 0) -> None:
        self.engine, self.at = engine, at
        self.now: dict[str, Tensor] = {}

    def push(self, weights: Weights, version: int) -> None:
        self.now = {name: weight.detach().clone() for name, weight in weights}
        self.engine.set_weights(self.now.items(), version)

    def generate(self, prompts: Tensor, draws: Tensor) -> Rollout:
        return self.engine.generate(prompts, draws, None)


class SkippedPush(Sampler):
    def push(self, weights: Weights, version: int) -> None:
        if version != self.at:
            super().push(weights, version)


class PartialPush(Sampler):
    """Half of the tensors are still those of the push before."""

    def push(self, weights: Weights, version: int) -> None:
        known = dict(weights)
        arrived = list(known)[: len(known) // 2] if version == self.at else list(known)
        super().push({name: known[name] if name in arrived else self.now[name] for name in known}.items(), version)


class ServerBehind(Sampler):
    """The second half of the prompts goes to a server that one push does not reach: the engine, with older weights.

    A rank of a tensor-parallel engine cannot be left behind here: on one CPU process there is one rank.
    """

    def __init__(self, engine: InflightEngine, at: int = 0) -> None:
        super().__init__(engine, at)
        self.second: dict[str, Tensor] = {}
        self.version = 0

    def push(self, weights: Weights, version: int) -> None:
        known = {name: weight.detach().clone() for name, weight in weights}
        self.second = self.second if version == self.at else known
        self.version = version
        super().push(known.items(), version)

    def generate(self, prompts: Tensor, draws: Tensor) -> Rollout:
        P, B = len(prompts) // 2, len(draws) // 2
        first = super().generate(prompts[:P], draws[:B])
        self.engine.set_weights(self.second.items(), self.version)
        second = super().generate(prompts[P:], draws[B:])
        self.engine.set_weights(self.now.items(), self.version)
        named = ("responses", "logp", "mask", "entropy")
        return Rollout(**{name: torch.cat([getattr(part, name) for part in (first, second)]) for name in named})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tied", tied=True)


def opened(model: Path) -> tuple[CausalPolicy, InflightEngine]:
    cell = config(model)
    policy = open_policy(cell, open_task(cell, model), model)
    assert isinstance(policy, CausalPolicy)
    job = SamplingJob(
        prompt_length=PROMPT,
        max_response=T,
        responses=32,
        adapters=False,
        publish_every=1,
        keeps_cache=False,
        regime="fifo",
        truncated=False,
    )
    engine = SAMPLERS.parse(cell.sampler).open(policy, job)
    assert engine is not None
    return policy, engine


def prompts(index: int) -> Tensor:
    """Eight prompts of 40 tokens that are neither padding nor an end."""
    return torch.randint(3, 90, (8, PROMPT), generator=torch.Generator().manual_seed(index))


def pushed(policy: CausalPolicy, sampler: Sampler, pushes: int) -> Iterator[VersionVerdict]:
    """Findings after each push, while the trainer's weights drift."""
    generator = torch.Generator().manual_seed(5)
    sampler.push(policy.named_parameters(), 0)
    canaries = Canaries(policy, prompts, T)
    canaries.learn(sampler.generate)
    for version in range(1, pushes + 1):
        with torch.no_grad():
            for weight in policy.parameters():
                weight.add_(3e-3 * torch.randn(weight.shape, generator=generator))
        sampler.push(policy.named_parameters(), version)
        yield canaries.check(sampler.generate, version)


def test_clean_pushes_raise_no_alarm(model: Path) -> None:
    """With a true rate above 5% at least one of 60 would be an alarm with 95% probability."""
    policy, engine = opened(model)
    assert [finding.text() for finding in pushed(policy, Sampler(engine), CLEAN) if finding.false] == []


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (SkippedPush, "version 1 sampled them: the push of 2 did not arrive"),
        (PartialPush, "no stored version fits: part of a push"),
        (ServerBehind, "a part of the sampler, such as a rank, is behind"),
    ],
)
def test_a_push_that_goes_wrong_is_found_and_named(model: Path, fault: type[Sampler], cause: str) -> None:
    policy, engine = opened(model)
    found = list(pushed(policy, fault(engine, at=2), 3))
    assert [finding.false for finding in found] == [False, True, False], [finding.text() for finding in found]
    assert cause in found[1].text()


def test_a_stale_prefix_cache_is_found_and_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's own prefix cache, switched on and never flushed; our engines open with it off."""
    settings = local_engine.engine_settings

    def cached(*given: Any, **named: Any) -> dict[str, Any]:
        return settings(*given, **named) | {"enable_prefix_caching": True, "block_size": 32}

    monkeypatch.setattr(local_engine, "engine_settings", cached)
    while local_engine._open:
        local_engine._open.popitem()[1].close()
    policy, engine = opened(model)
    found = list(pushed(policy, Sampler(engine), 2))
    while local_engine._open:
        local_engine._open.popitem()[1].close()
    assert all(finding.false for finding in found), [finding.text() for finding in found]
    assert all("a stale prefix cache" in finding.text() for finding in found)


def test_the_mismatch_of_the_engine_by_component(model: Path) -> None:
    setup = open_setup(config(model, prompts=4, responses=4), model, 0)
    setup.older = {name: weight + 0.01 * torch.randn_like(weight) for name, weight in setup.exact.weights.items()}
    try:
        chosen = [COMPONENTS.parse(text) for text in ("weights", "head", "kv-cache", "batching", "top-p", "lag(2)")]
        found = attribute(setup, chosen, [8])
    finally:
        setup.close()
    sd = {row.path: row.gap.sd for row in found.rows if row.gap}
    assert sd["exact path"] < TOLERANCE
    assert sd["batching"] < TOLERANCE
    assert all(sd[name] > 10 * sd["exact path"] for name in ("weights", "head", "lag(k=2)")), sd
    assert [row.path for row in found.rows if row.why_not] == ["kv-cache", "top-p"]
