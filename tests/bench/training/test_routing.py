"""Routes in training: recorded, replayed, counted by cause, and resumed to the bit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.routed import UNROUTED
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.routing import differ, scores_of
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.records import STEPS_FILE

pytestmark = pytest.mark.usefixtures("no_evaluations")

NOISY = "fifo(router_noise=0.4)"
CHANGES = ("routers_changed", "routers_changed_engine", "routers_changed_lag", "tokens_rerouted")


def trainer(method: str = "clip", **more: Any) -> Trainer:
    values = {"task": "chain", "policy": "moe", "prompts": 2, "responses": 4, "steps": 5, "staleness": 2, "lr": 3e-3}
    return build_trainer(CellConfig(method=method, seed=1, lr_warmup=1, **(values | more)))


def columns(run: Trainer) -> dict[str, list[Any]]:
    """Everything recorded but wall-clock times."""
    return {
        name: values
        for table in run.recorder.tables.values()
        for name, values in table.columns.items()
        if not name.startswith("seconds")
    }


def steps(run: Trainer) -> dict[str, list[Any]]:
    return dict(run.recorder.tables[STEPS_FILE].columns)


def finished(run: Trainer) -> Trainer:
    while not run.status:
        run.advance()
    return run


@pytest.mark.parametrize(
    ("method", "regime", "replay"),
    [
        ("vcpo", NOISY, "r3"),
        ("clip", "inflight(router_noise=0.4)", "r2"),
        ("clip", "async(clock=virtual,router_noise=0.4)", "r3"),
    ],
)
def test_saved_and_resumed_is_the_same_run(tmp_path: Path, method: str, regime: str, replay: str) -> None:
    kind = {"regime": regime, "replay": replay, "staleness": 2}
    through = finished(trainer(method, **kind))
    first = trainer(method, **kind)
    for _ in range(3):
        first.advance()
    first.save(tmp_path)
    second = trainer(method, **kind)
    second.load(tmp_path)
    assert repr(columns(through)) == repr(columns(finished(second)))
    for ours, theirs in zip(through.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_changes_are_split_into_the_engines_part_and_that_of_lag() -> None:
    clean, noisy, late = (
        steps(finished(trainer(regime=regime, staleness=lag))) for regime, lag in (("fifo", 0), (NOISY, 0), ("fifo", 2))
    )
    assert all(value == 0 for name in CHANGES for value in clean[name])
    assert noisy["routers_changed"] == noisy["routers_changed_engine"]
    assert noisy["routers_changed_lag"] == [0.0] * 5
    assert min(noisy["routers_changed_engine"]) > 0.04
    assert min(noisy["tokens_rerouted"]) > min(noisy["routers_changed"])
    assert late["routers_changed"] == late["routers_changed_lag"]
    assert late["routers_changed_engine"] == [0.0] * len(late["step"])
    assert late["routers_changed_lag"][-1] > 0


def test_what_is_replayed_and_what_that_leaves() -> None:
    """At lag 0 `r2` is the learner's own choice, and only `r3` takes away what the engine changed."""
    ratios = {}
    for replay in ("off", "r2", "r3"):
        run = trainer(regime=NOISY, staleness=0, replay=replay)
        batch = run.source.next_batch(0).batch
        assert batch.routes is not None
        assert batch.learner_routes is not None
        assert differ(batch.routes.flatten(0, 1), batch.learner_routes.flatten(0, 1)).any()
        with torch.no_grad():
            logp = scores_of(run.policy, batch, run.learner.settings.replay).logp
        assert torch.equal(run.learner.logp(batch).flatten(0, 1), logp)
        done = run.learner.update(batch, 0)
        assert torch.equal(done.logp.flatten(0, 1), logp)  # what the method sees
        ratios[replay] = (logp - batch.behavior_logp.flatten(0, 1)).square().mean()
    assert ratios["r2"] == ratios["off"]
    assert 0 < ratios["r3"] < ratios["off"]


def test_at_a_lag_r2_replays_the_learner_of_then() -> None:
    run = finished(trainer(staleness=2, replay="r2"))
    batch = run.source.next_batch(run.step).batch
    assert batch.routes is not None
    assert torch.equal(batch.routes, batch.learner_routes)  # type: ignore[arg-type]  # there is no engine noise
    logp = [scores_of(run.policy, batch, replay).logp.detach() for replay in ("off", "r2", "r3")]
    assert torch.equal(logp[1], logp[2])
    assert not torch.equal(logp[0], logp[1])


@pytest.mark.parametrize("record", ["basic", "full"])
def test_pieces_of_a_batch_keep_their_routes(record: str) -> None:
    whole, cut = (trainer("vcpo", regime=NOISY, replay="r3", record=record) for _ in range(2))
    cut.learner.settings = replace(cut.learner.settings, micro_tokens=60)
    batch = whole.source.next_batch(0).batch
    one, other = whole.learner.update(batch, 0), cut.learner.update(batch, 0)
    torch.testing.assert_close(one.logp, other.logp, rtol=0, atol=1e-5)
    torch.testing.assert_close(one.score_norm_sq, other.score_norm_sq, rtol=1e-3, atol=0)
    assert one.routers == pytest.approx(other.routers)


def test_the_dense_policy_has_no_routes() -> None:
    run = trainer(policy="tiny", staleness=0, steps=1)
    batch = run.source.next_batch(0).batch
    assert batch.routes is batch.learner_routes is None
    finished(run)
    assert all(steps(run)[name] == [None] for name in CHANGES)


def test_unknown_routes_are_no_change() -> None:
    one = torch.tensor([[[[0, 1]], [[2, 3]], [[UNROUTED, UNROUTED]]]], dtype=torch.int8)
    other = torch.tensor([[[[0, 1]], [[2, 4]], [[5, 6]]]], dtype=torch.int8)
    assert differ(one, other).tolist() == [[[False], [True], [False]]]
