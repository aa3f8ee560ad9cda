"""Episodes with an environment on their way to the learner: versions, delays, records, and kills that change no bit."""

from pathlib import Path

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.ticket_sampler import service_time
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.running.pool.stacks import why_not_stacked
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError
from vcpo_bench.records.step_facts import EPISODE_FACTS

pytestmark = pytest.mark.usefixtures("no_evaluations")

SHAPE = CellShape(seed=3, prompts=2, responses=3, tokens=10)


def cell(regime: str = "fifo", staleness: int = 2, **more: object) -> CellConfig:
    values = {"method": "vcpo", "task": "lookup", "prompts": 2, "responses": 4, "steps": 6, "eval_every": 100} | more
    return CellConfig(regime=regime, staleness=staleness, seed=1, **values)


def numbers(trainer: Trainer) -> str:
    """Everything recorded but wall-clock times."""
    tables = {name: table.columns for name, table in trainer.recorder.tables.items()}
    return repr({(name, column): values for name, columns in tables.items() for column, values in columns.items()
                 if not column.startswith("seconds")})  # fmt: skip


@pytest.mark.parametrize(
    "regime",
    ["fifo", "inflight", "inflight(cache=recompute)", "random", "async(clock=virtual,call=0.3,slow_calls=0.2)"],
)
def test_killed_and_resumed_is_the_same_run(tmp_path: Path, regime: str) -> None:
    config = cell(regime, record="diagnostics")
    through, first, second = (build_trainer(config) for _ in range(3))
    while not through.status:
        through.advance()
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    second.load(tmp_path)
    while not second.status:
        second.advance()
    assert numbers(through) == numbers(second)
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_lag_in_flight_spans_turns_and_changes_within_them() -> None:
    """Weights change at exact tokens, whoever wrote them: a turn may begin under one version and end under another."""
    trainer = build_trainer(cell("inflight(every=4)", staleness=6, prompts=4))
    for _ in range(6):
        trainer.advance()
    batch = trainer.source.next_batch(6).batch
    T = batch.responses.shape[-1]
    assert torch.equal(batch.version, (torch.arange(T) // 4).expand(batch.version.shape))
    assert not batch.mask.all(-1).any()
    assert batch.oldest().eq(0).all()
    newest = torch.where(batch.mask, batch.version, -1).amax(-1)
    assert (newest >= 3).any()  # the answer of a long episode was drawn by weights three updates younger


def test_what_is_recorded_of_episodes() -> None:
    trainer = build_trainer(cell(record="diagnostics"))
    trainer.advance()
    steps, samples = (trainer.recorder.tables[f"{name}.parquet"].columns for name in ("steps", "samples"))
    for name in EPISODE_FACTS:
        assert steps[f"episode_{name}"] == [pytest.approx(sum(samples[name]) / 8)]
    assert steps["episode_turns"][0] > 2
    assert steps["episode_observed"][0] > 3
    responses = trainer.source.next_batch(1).batch
    policy_tokens = responses.mask.sum().item()
    assert policy_tokens < responses.mask.numel()


def test_length_and_lag_count_the_policys_tokens_only() -> None:
    trainer = build_trainer(cell(record="diagnostics"))
    trainer.advance()
    steps, lags = (trainer.recorder.tables[f"{name}.parquet"].columns for name in ("steps", "lags"))
    samples = trainer.recorder.tables["samples.parquet"].columns
    assert sum(lags["tokens"]) == sum(samples["length"])
    assert steps["length_mean"][0] == pytest.approx(sum(samples["length"]) / 8)
    said_per_call = [length / calls for length, calls in zip(samples["length"], samples["calls"], strict=True) if calls]
    assert max(said_per_call) < 10


def test_without_an_environment_there_are_no_counts() -> None:
    trainer = build_trainer(cell(task="chain", record="diagnostics"))
    trainer.advance()
    assert trainer.recorder.tables["steps.parquet"].columns["episode_turns"] == [None]
    assert set(trainer.recorder.tables["samples.parquet"].columns["turns"]) == {None}


def test_calls_add_to_the_time_of_the_response_that_waits_longest() -> None:
    times = ServiceTimes(sampler=1.0, learner=1.0, call=0.5)
    assert times.group(SHAPE, 0, 5) == 0.5
    assert times.group(SHAPE, 0, 5, [0, 0, 0]) == 0.5
    assert times.group(SHAPE, 0, 5, [1, 3, 2]) == 0.5 + 1.5


def test_slow_calls_are_seeded_and_as_frequent_as_asked() -> None:
    times = ServiceTimes(sampler=1.0, learner=1.0, call=1.0, slow_calls=0.2, slowdown=11.0)
    shape = SHAPE._replace(responses=1)
    found = [times.group(shape, ticket, 0, [1]) for ticket in range(2000)]
    assert found == [times.group(shape, ticket, 0, [1]) for ticket in range(2000)]
    assert set(found) == {1.0, 11.0}
    assert 0.16 < found.count(11.0) / 2000 < 0.24
    more = [times.group(shape, ticket, 0, [3]) for ticket in range(2000)]
    assert all(long >= short for long, short in zip(more, found, strict=True))  # the first call takes what it took


def test_the_time_of_a_group_counts_its_calls() -> None:
    found = torch.zeros(1, 3, len(EPISODE_FACTS), dtype=torch.int64)
    found[0, 1, EPISODE_FACTS.index("calls")] = 4
    mask = torch.ones(1, 3, 10, dtype=torch.bool)
    group = Trajectories(0, *[torch.zeros(1, 1)] * 3, mask, *[torch.zeros(1, 1)] * 2, episodes=found)
    assert service_time(ServiceTimes(1.0, 1.0, call=2.0), SHAPE, 0, group) == 9.0


def flights(regime: str) -> list[tuple[float, float]]:
    """Time in flight and lag of every group of some updates, without training."""
    source = build_trainer(cell(regime, staleness=8)).source
    found = []
    for update in range(30):
        batch = source.next_batch(update).batch
        assert batch.seconds is not None
        found += zip(batch.seconds[:, 0, 0].tolist(), (update - batch.oldest()[:, 0]).tolist(), strict=True)
    return found[10:]


def test_a_slow_environment_is_a_source_of_lag() -> None:
    """A learner that does not wait gets a group whose calls were slow when its weights are older."""
    found = sorted(flights("async(clock=virtual,overflow=drop,slots=3,learner=0.5,call=0.3,slow_calls=0.05)"))
    third = len(found) // 3
    fast, slow = ([lag for _, lag in part] for part in (found[:third], found[-third:]))
    assert sum(slow) / third > sum(fast) / third + 0.5


def test_a_delay_without_an_environment_is_refused() -> None:
    with pytest.raises(UsageError, match="chain has no environment that a call could wait for"):
        build_trainer(cell("async(clock=virtual,call=1)", task="chain"))


def test_tasks_with_an_environment_are_not_stacked() -> None:
    assert why_not_stacked(cell()) == "tasks with an environment are not stacked"
