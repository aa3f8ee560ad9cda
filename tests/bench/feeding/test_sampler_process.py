"""What the sampler process decides: how much it starts, when a group is due, and how long it may sleep."""

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.feeding.process_source import ProcessSource
from vcpo_bench.bench.feeding.sampler_handle import SamplerHandle, SamplerSetup
from vcpo_bench.bench.feeding.sampler_process import BEAT_SECONDS, SamplerProcess
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Rollout

CONFIG = CellConfig(method="clip", task="walk-eos", regime="async", staleness=2, prompts=3, responses=4, seed=1)
FULL = 60.0
"""Seconds of a group whose longest response has the full length: none is delivered within a test."""


@pytest.fixture
def sampler() -> Iterator[SamplerProcess]:
    """A sampler of two slots, in this process, with published weights."""
    ours, theirs = multiprocessing.Pipe()
    task = open_task(CONFIG, None)
    policy = open_policy(CONFIG, task, None, "cpu")
    weights = SharedWeights.create(sum(p.numel() for p in policy.trainable()))
    weights.publish(policy, 0)
    ours.send(SamplerSetup(CONFIG, slots=2, times=ServiceTimes(sampler=FULL, learner=0.0)))
    with ours, theirs:
        yield SamplerProcess(theirs, weights.descriptor)
    weights.close()


def test_it_starts_no_more_groups_than_it_has_slots(sampler: SamplerProcess) -> None:
    sampler.pending.extend(range(5))
    sampler._begin()
    assert len(sampler.in_flight) == 2
    assert list(sampler.pending) == [2, 3, 4]
    sampler._begin()
    assert len(sampler.in_flight) == 2


def test_a_group_is_due_when_its_longest_response_would_be_done(sampler: SamplerProcess) -> None:
    sampler.setup = sampler.setup._replace(slots=8)
    sampler.pending.extend(range(8))
    sampler._begin()
    uneven = False
    for _, _, group in sampler.in_flight:
        lengths = group.arrays["mask"].sum(-1)
        uneven |= lengths.min() < lengths.max()
        seconds = group.finished - group.started
        assert seconds == pytest.approx(FULL * lengths.max() / sampler.shape.tokens)
    assert uneven, "responses of equal lengths test nothing"


class StampingEngine(PolicyEngine):
    """Stamps every token with the version it was told, as a server does."""

    def generate(self, prompts: Tensor, uniforms: Tensor, eos: int | None) -> Rollout:
        drawn = super().generate(prompts, uniforms, eos)
        return replace(drawn, version=torch.full_like(drawn.responses, self.version))


def test_an_engine_that_stamps_tokens_is_told_the_version_of_its_weights(sampler: SamplerProcess) -> None:
    sampler.published.sampler = StampingEngine(sampler.policy, copied=True)
    sampler.weights.publish(sampler.policy, 7)
    sampler.pending.append(0)
    sampler._begin()
    ((_, _, group),) = sampler.in_flight
    assert group.version == 7
    assert (group.arrays["version"] == 7).all()


def test_it_sleeps_until_the_next_delivery_and_never_past_a_heartbeat(sampler: SamplerProcess) -> None:
    assert sampler._patience() == BEAT_SECONDS  # nothing to do
    sampler.pending.extend(range(3))
    assert sampler._patience() == 0  # a slot is free
    sampler._begin()
    assert sampler._patience() == BEAT_SECONDS  # the next delivery is far
    _, ticket, group = sampler.in_flight[0]
    sampler.in_flight[0] = (time.monotonic() - 1, ticket, group)
    assert sampler._patience() == 0  # a delivery is late


def test_the_learner_takes_what_has_arrived_and_does_not_wait_for_more() -> None:
    ours, theirs = multiprocessing.Pipe()
    handle = object.__new__(SamplerHandle)  # without a process: the test is the sampler
    handle.pipe = ours
    with ours, theirs:
        theirs.send([("begun", [0], 0)])
        began = time.monotonic()
        assert handle.listen(30.0) == [("begun", [0], 0)]
        assert time.monotonic() - began < 0.9


def test_the_share_of_time_in_which_the_sampler_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = build_trainer(CONFIG)
    source = trainer.source
    assert isinstance(source, ProcessSource)
    monkeypatch.setattr("vcpo_bench.bench.feeding.process_source.time.monotonic", lambda: 100.0)
    weights = source._open()
    for since, busy, share in ((98.0, 1.0, 0.5), (98.0, 0.0, 0.0), (99.0, 1.75, 1.0)):
        source._then = (since, 0.0)
        weights.beat(busy)
        assert source._busy(weights) == pytest.approx(share)
        assert source._then == (100.0, busy)
    source._then = (96.0, 5.0)  # a sampler that was replaced counts from 0 again
    weights.beat(1.0)
    assert source._busy(weights) == 0
    trainer.close()
