"""A sampler process and a learner at the same time: real processes, and everything that can go wrong with them."""

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding import shared_weights
from vcpo_bench.bench.feeding.process_source import MAX_RESTARTS, ProcessSource, SamplerFailed
from vcpo_bench.bench.feeding.sampler_handle import Delivery, numpy_arrays, patience
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError

FASTER = "sampler=0.01"


@pytest.fixture
def make() -> Iterator:
    """Trainers whose sampler processes end with the test."""
    made: list[Trainer] = []

    def build(regime: str, staleness: int = 3, **more: object) -> Trainer:
        config = {"task": "walk-eos", "prompts": 3, "responses": 4, "steps": 12, "eval_every": 100} | more
        made.append(build_trainer(CellConfig(method="clip", regime=regime, staleness=staleness, seed=1, **config)))
        return made[-1]

    yield build
    for trainer in made:
        trainer.close()


def source(trainer: Trainer) -> ProcessSource:
    assert isinstance(trainer.source, ProcessSource)
    return trainer.source


def process(trainer: Trainer) -> subprocess.Popen:
    sampler = source(trainer).sampler
    assert sampler is not None
    return sampler.process


def events(trainer: Trainer) -> Counter[str]:
    return Counter(trainer.recorder.tables["events.parquet"].columns["event"])


def run(trainer: Trainer, updates: int) -> list[tuple[int, int]]:
    """Advance; the (batch, group) of everything consumed."""
    consumed: list[tuple[int, int]] = []
    update = trainer.learner.update

    def spy(batch, now):
        consumed.extend(map(tuple, batch.origins().tolist()))
        return update(batch, now)

    trainer.learner.update = spy
    for _ in range(updates):
        trainer.advance()
    trainer.learner.update = update
    return consumed


def test_lag_grows_to_k_and_a_full_queue_is_resumed_without_losing_anything(make, tmp_path: Path) -> None:
    began = time.monotonic()
    first = make("async", record="diagnostics")
    consumed = run(first, 5)
    deadline = time.monotonic() + 20
    while len(source(first).schedule.ready) < 9 and time.monotonic() < deadline:
        source(first)._listen(5, 0.05)
    first.save(tmp_path)
    first.close()
    second = make("async", record="diagnostics")
    second.load(tmp_path)
    assert len(source(second).groups) == 9
    consumed += run(second, 7)
    assert consumed == [(batch, group) for batch in range(12) for group in range(3)]
    assert second.status == "completed"
    assert source(second).schedule.conserved()
    columns = second.recorder.tables["steps.parquet"].columns
    assert max(columns["lag_max"]) == 3
    assert 0 < min(columns["seconds_in_flight"]) <= max(columns["seconds_in_flight"]) < time.monotonic() - began
    assert min(columns["seconds_in_queue"]) >= 0
    assert all(queued + flying <= 4 * 3 for queued, flying in zip(columns["queued"], columns["in_flight"], strict=True))
    assert all(value > 0 for value in second.recorder.tables["samples.parquet"].columns["seconds_in_flight"])


@pytest.mark.slow
def test_stragglers_are_dropped_and_nothing_is_trained_twice(make) -> None:
    trainer = make("async(overflow=drop,sampler=0.2,straggler=0.2,slowdown=50,slots=9)", steps=30)
    began = time.monotonic()
    consumed = run(trainer, 30)
    schedule = source(trainer).schedule
    assert len(set(consumed)) == len(consumed) == 90
    dropped = {name: count for name, count in events(trainer).items() if name.startswith("dropped")}
    assert schedule.dropped.total() == sum(dropped.values()) > 0
    assert set(events(trainer)) <= {"dropped_in_queue", "dropped_in_flight", "late"}
    assert schedule.conserved()
    assert time.monotonic() - began < 120  # a straggler alone takes 10 s, and there are dozens
    lags = trainer.recorder.tables["steps.parquet"].columns["lag_max"]
    assert max(lags) <= 3


@pytest.mark.slow
def test_a_straggler_is_waited_for_and_not_taken_for_a_hung_sampler(make) -> None:
    trainer = make("async(overflow=wait,sampler=0.02,straggler=0.2,slowdown=50)", steps=9)
    consumed = run(trainer, 1)
    source(trainer).sampler._hang = 0.7  # type: ignore[union-attr]  # a straggler takes a second
    began = time.monotonic()
    consumed += run(trainer, 8)
    assert time.monotonic() - began > 1
    assert consumed == [(batch, group) for batch in range(9) for group in range(3)]
    assert not events(trainer)
    assert source(trainer).schedule.conserved()


@pytest.mark.slow
def test_a_sampler_that_is_killed_or_hangs_is_noticed_and_replaced(make) -> None:
    trainer = make(f"async({FASTER})")
    consumed = run(trainer, 3)
    for blow in (signal.SIGKILL, signal.SIGSTOP):
        gone = process(trainer)
        source(trainer).sampler._hang = 1.0  # type: ignore[union-attr]
        os.kill(gone.pid, blow)
        began = time.monotonic()
        consumed += run(trainer, 4)
        assert time.monotonic() - began < 60  # at most a second of silence, then a new process
        assert process(trainer).pid != gone.pid
        assert gone.poll() is not None
    assert events(trainer) == {"sampler_died": 1, "sampler_hung": 1}
    assert consumed == [(batch, group) for batch in range(11) for group in range(3)]


def test_a_sampler_that_never_works_ends_the_cell_by_name(make, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make("async")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SamplerFailed, match="sampler_died"):
        trainer.advance()
    noted = [event["event"] for event in source(trainer).log.drain()]
    assert noted == ["sampler_died"] * (MAX_RESTARTS + 1)


def fake_result(trainer: Trainer, ticket: int, broken: bool = False) -> Delivery:
    group = TicketSampler(trainer.config, trainer.task, PublishedPolicy(trainer.policy, 1, "off", 0)).run([ticket], 0)[
        ticket
    ]
    arrays = numpy_arrays(group.tensors())
    if broken:
        arrays["behavior_logp"] = np.full_like(arrays["behavior_logp"], math.nan)
    return Delivery(ticket, 0, 0.0, 0.0, arrays)


def test_duplicates_and_late_results_are_named_and_not_trained(make) -> None:
    subject = source(trainer := make("async"))
    subject.schedule.admit(0)
    for _ in range(2):
        subject.receive(0, fake_result(trainer, 2))
    subject.receive(0, fake_result(trainer, 77))
    found = [(event["event"], event["batch"], event["group"]) for event in subject.log.drain()]
    assert found == [("duplicate", 0, 2), ("late", 25, 2)]
    assert list(subject.groups) == [2]
    assert len(subject.schedule.ready) == 1


def test_numbers_that_are_not_finite_are_sampled_again_then_end_the_cell(make) -> None:
    subject = source(trainer := make("async"))
    subject.schedule.admit(0)
    subject.receive(0, fake_result(trainer, 0, broken=True))
    assert subject.schedule.lost == [0]
    assert not subject.groups
    subject.schedule.admit(0)
    subject.receive(0, fake_result(trainer, 0))
    assert list(subject.groups) == [0]
    for attempt in range(3):
        subject.schedule.admit(0)
        if attempt < 2:
            subject.receive(0, fake_result(trainer, 1, broken=True))
    with pytest.raises(SamplerFailed, match="sampler_nonfinite: ticket 1"):
        subject.receive(0, fake_result(trainer, 1, broken=True))


@pytest.mark.slow
def test_the_sampler_ends_with_its_learner() -> None:
    """Also when the learner is killed and cannot say so."""
    code = (
        "import torch, time\n"
        "from vcpo_bench.bench.cells.config import CellConfig\n"
        "from vcpo_bench.bench.training.build import build_trainer\n"
        "torch.set_num_threads(1)\n"
        "t = build_trainer(CellConfig(method='clip', regime='async', staleness=2, seed=0, prompts=2, responses=2))\n"
        "t.advance()\n"
        "print(t.source.sampler.process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    learner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert learner.stdout is not None
    sampler = int(learner.stdout.readline())
    learner.kill()
    learner.wait()
    learner.stdout.close()
    deadline = time.monotonic() + 20
    while _alive(sampler) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(sampler)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Weights(torch.nn.Linear):
    """As much of a model as shared memory needs."""

    def trainable(self) -> list[torch.nn.Parameter]:
        return list(self.parameters())


@pytest.mark.parametrize("place", ["nowhere", "/proc"])
def test_where_ram_has_no_folder_weights_are_shared_through_a_temporary_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.setattr(shared_weights, "_IN_RAM", place)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory = SharedWeights.create(3)
    assert os.fstat(memory.descriptor).st_dev == tmp_path.stat().st_dev
    memory.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"neither can be written .*; set TMPDIR to a folder that can"):
        SharedWeights.create(3)


def test_shared_weights_are_never_a_mixture_of_versions() -> None:
    policy, copy = (Weights(300, 300).requires_grad_(False) for _ in range(2))
    memory = SharedWeights.create(sum(p.numel() for p in policy.parameters()))
    other = SharedWeights(os.dup(memory.descriptor), sum(p.numel() for p in policy.parameters()))
    assert memory.silence() is None
    pid = os.fork()
    if pid == 0:  # the publisher: every parameter equals the version
        try:
            torch.set_num_threads(1)  # the threads of the parent did not survive the fork: waiting for them hangs
            for version in range(1, 400):
                with torch.no_grad():
                    for parameter in policy.parameters():
                        parameter.fill_(version)
                memory.publish(policy, version)
        finally:  # whatever happens, this process must not go on with the tests
            os._exit(0)
    seen, ended = 0, False
    while seen < 399:
        ended = ended or os.waitpid(pid, os.WNOHANG)[0] == pid
        version = other.read(copy)
        assert version >= seen
        assert version == 399 or not ended, "the publisher died"
        if version:
            assert {float(value) for p in copy.parameters() for value in (p.min(), p.max())} == {version}
        seen = version
    if not ended:
        os.waitpid(pid, 0)
    other.beat(1.5)
    assert memory.busy == 1.5
    assert memory.silence() < 1
    memory.close()
    other.close()


def test_a_batch_of_long_responses_may_be_drawn_in_silence() -> None:
    embedded = CellConfig(method="clip", staleness=0, seed=0)
    assert patience(embedded, 50.0) == (120.0, 50.0)
    language = replace(embedded, model="tiny@0", max_response=5000)
    assert patience(language, 5.0) == (1200.0, 550.0)
