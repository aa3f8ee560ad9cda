"""The times that groups are recorded with: in flight, in the queue, and under the virtual clock."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.process_source import ProcessSource
from vcpo_bench.bench.feeding.sampler_handle import Delivery, numpy_arrays
from vcpo_bench.bench.feeding.source import PlannedSource
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler
from vcpo_bench.bench.feeding.virtual_source import VirtualSource, load_groups
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories

FLIGHT, QUEUE = 2.0, 1.0


@pytest.fixture
def trainer(request: pytest.FixtureRequest) -> Iterator[Trainer]:
    values = {"task": "walk-eos", "prompts": 3, "responses": 4, "steps": 12, "regime": request.param}
    with closing(build_trainer(CellConfig(method="clip", staleness=2, seed=1, **values))) as built:
        yield built


@pytest.mark.parametrize("trainer", ["async"], indirect=True)
def test_seconds_in_flight_and_in_the_queue(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    source = trainer.source
    assert isinstance(source, ProcessSource)
    monkeypatch.setattr(source, "_talk", lambda update, say: None)  # no sampler process: the test delivers
    source._admit(0)
    config, task = source.setup.config, trainer.task
    sampler = TicketSampler(config, task, PublishedPolicy(trainer.policy, 1, "off", config.seed))
    now = time.monotonic()
    for ticket, group in sampler.run([0, 1, 2], 0).items():
        arrays = numpy_arrays(group.tensors())
        source.receive(0, Delivery(ticket, 0, now - FLIGHT - QUEUE, now - QUEUE, arrays))
    step = source.next_batch(0)
    elapsed = time.monotonic() - now
    assert step.batch.seconds is not None
    flight, queue = step.batch.seconds.unbind(-1)
    torch.testing.assert_close(flight, torch.full_like(flight, FLIGHT))
    assert bool(((queue >= QUEUE) & (queue <= QUEUE + elapsed)).all())
    assert step.facts["seconds_in_flight"] == pytest.approx(FLIGHT)
    assert QUEUE <= step.facts["seconds_in_queue"] <= QUEUE + elapsed


@pytest.mark.parametrize("trainer", ["async(clock=virtual,sampler=5)"], indirect=True)
def test_a_virtual_group_takes_as_long_as_its_longest_response(trainer: Trainer) -> None:
    source = trainer.source
    assert isinstance(source, VirtualSource)
    times = source._begin([0, 1, 2], 0)
    lengths = [source.groups[ticket].mask.sum(-1).flatten().tolist() for ticket in range(3)]
    assert any(min(each) < max(each) for each in lengths), "responses of equal lengths test nothing"
    full = source.schedule.shape.tokens
    assert times == [pytest.approx(5 * max(each) / full) for each in lengths]


@pytest.mark.parametrize("trainer", ["fifo"], indirect=True)
def test_the_seconds_of_sampling_are_a_part_of_the_call(trainer: Trainer) -> None:
    began = time.perf_counter()
    step = trainer.source.next_batch(0)
    assert 0 < step.seconds_sample < time.perf_counter() - began


@pytest.mark.parametrize("trainer", ["minibatch"], indirect=True)
def test_scores_under_a_proximal_policy_are_a_part_of_the_seconds_of_sampling(trainer: Trainer) -> None:
    source, slow = trainer.source, 0.2

    def proximal(batch: Trajectories) -> torch.Tensor:
        time.sleep(slow)
        return trainer.learner.logp(batch)

    assert isinstance(source, PlannedSource)
    source.proximal = proximal
    assert source.next_batch(0).seconds_sample > 3 * slow  # three batches are a rollout


def test_groups_of_a_checkpoint_know_their_batch() -> None:
    config = CellConfig(method="clip", task="walk-eos", prompts=3, responses=4, staleness=2, seed=1)
    with closing(build_trainer(config)) as built:
        sampler = TicketSampler(config, built.task, PublishedPolicy(built.policy, 1, "off", config.seed))
        groups = sampler.run([2, 4, 9], 0)
    tensors = {f"{ticket}/{name}": x for ticket, group in groups.items() for name, x in group.tensors().items()}
    again = load_groups(tensors, config.prompts)
    assert {ticket: group.index for ticket, group in again.items()} == {2: 0, 4: 1, 9: 3}
