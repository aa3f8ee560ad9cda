"""Regimes in training: lag 0 is one run, realized lags are the planned ones, resumed runs keep their bits."""

import copy
import itertools
from collections import Counter
from pathlib import Path

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.source import PlannedSource
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy, rounded
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError

pytestmark = pytest.mark.usefixtures("no_evaluations")

VIRTUAL = "async(clock=virtual,sampler=1.5,straggler=0.1,slots=2"
EXPRESSIONS = [
    "fifo(engine_noise=0.1,publish_every=2)", "minibatch", "minibatch(epochs=2)", "inflight",
    "inflight(cache=recompute)", "inflight(every=9,engine_noise=int8)",
    "inflight(cache=recompute,mask_replay=on,top_p=0.8)", "fifo(mask_replay=on,publish_every=2,top_k=3)", "random",
    "random(geometric,unit=trajectory)", "random(mask_replay=on,top_p=0.9,unit=trajectory)",
    "random(trace=[0 2 3 1])", "replay",
]  # fmt: skip


def trainer(regime: str, staleness: int = 3, method: str = "clip", **more: object) -> Trainer:
    config = {"task": "walk-eos", "prompts": 3, "responses": 4, "steps": 9, "eval_every": 100} | more
    return build_trainer(CellConfig(method=method, regime=regime, staleness=staleness, seed=1, **config))


def run(subject: Trainer, updates: int | None = None) -> Trainer:
    for _ in range(subject.updates if updates is None else updates):
        subject.advance()
    return subject


def steps(subject: Trainer) -> dict[str, list]:
    columns = subject.recorder.tables["steps.parquet"].columns
    return {name: values for name, values in columns.items() if not name.startswith("seconds")}


def watched(subject: Trainer) -> tuple[dict[int, TinyPolicy], list[Trajectories]]:
    """The policy before each update of a run, by update, and what each consumed."""
    snapshots, batches, update = {}, [], subject.learner.update

    def spy(batch: Trajectories, now: int):
        snapshots[now] = copy.deepcopy(subject.policy)
        batches.append(batch)
        return update(batch, now)

    subject.learner.update = spy  # type: ignore[method-assign]
    run(subject)
    return snapshots, batches


def consumed(subject: Trainer) -> list[Trajectories]:
    """What each update of a run consumed."""
    return watched(subject)[1]


def logp(policy: TinyPolicy, batch: Trajectories) -> torch.Tensor:
    with torch.no_grad():
        scored = score(policy, batch.flat())
    return scored.logp.view(batch.mask.shape)


def same_weights(first: Trainer, second: Trainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.policy.parameters(), second.policy.parameters(), strict=True))


@pytest.mark.parametrize("task", [pytest.param("chain", marks=pytest.mark.slow), "walk-eos"])
def test_lag_zero_is_the_same_run_in_every_regime(task: str) -> None:
    reference = run(trainer("fifo", 0, task=task, steps=4))
    for name in REGIMES.names():
        other = run(trainer(name, 0, task=task, steps=4))
        other.close()
        assert same_weights(reference, other), name
        known = {column for column, values in steps(reference).items() if values[0] is not None}
        for column in known:
            assert repr(steps(reference)[column]) == repr(steps(other)[column]), (name, column)


@pytest.mark.parametrize("regime", EXPRESSIONS)
def test_realized_histogram_is_the_planned_one(regime: str) -> None:
    subject = run(trainer(regime))
    assert isinstance(subject.source, PlannedSource)
    lags = subject.recorder.tables["lags.parquet"].columns
    rows = list(zip(lags["step"], lags["lag"], lags["trajectories"], lags["tokens"], strict=True))
    for each in plan(subject.source.schedule, subject.updates):
        found = Counter({lag: count for step, lag, count, _ in rows if step == each.update and count})
        assert found == each.lags
    lengths = [round(12 * mean) for mean in steps(subject)["length_mean"]]
    assert [sum(t for s, _, _, t in rows if s == u) for u in range(subject.updates)] == lengths


RESUMED = [*EXPRESSIONS, f"{VIRTUAL})", f"{VIRTUAL},overflow=drop,engine_noise=0.1,mask_replay=on,top_p=0.8)"]
SIMPLER = {"minibatch(epochs=2)", "inflight", "random", "random(trace=[0 2 3 1])", f"{VIRTUAL})"}
"""Each a simpler form of another."""


@pytest.mark.parametrize(
    "regime", [pytest.param(regime, marks=[pytest.mark.slow] * (regime in SIMPLER)) for regime in RESUMED]
)
def test_resumed_with_a_full_queue_it_is_the_same_run(tmp_path: Path, regime: str) -> None:
    at = 5
    through, first = run(trainer(regime, record="full")), run(trainer(regime, record="full"), at)
    first.save(tmp_path)
    second = trainer(regime, record="full")
    second.load(tmp_path)
    run(second, through.updates - at)
    assert same_weights(through, second)
    for table in ("steps.parquet", "lags.parquet", "samples.parquet"):
        ours, theirs = (t.recorder.tables[table].columns for t in (through, second))
        for column in ours.keys() - {name for name in ours if name.startswith("seconds")}:
            assert repr(ours[column]) == repr(theirs[column]), (table, column)


def test_hold_counts_its_budget_from_the_end_of_the_fill() -> None:
    subject = trainer("fifo(fill=hold)", 3, steps=4)
    run(subject, 7)
    assert subject.status == "completed"
    assert steps(subject)["filling"] == [True] * 3 + [False] * 4
    ramp = run(trainer("fifo", 3, steps=7))
    assert same_weights(subject, ramp)


def test_every_regime_uses_the_prompts_and_the_noise_of_the_batch() -> None:
    """Data are common random numbers: what theta_0 samples for batch 0 does not depend on the regime."""
    first = {name: consumed(trainer(name, 3, steps=1))[0] for name in ("fifo", "random", "inflight")}
    for name in ("random", "inflight"):
        assert torch.equal(first["fifo"].prompts, first[name].prompts)
        assert torch.equal(first["fifo"].responses, first[name].responses)


def test_random_lag_equals_a_snapshot_of_old_weights() -> None:
    """Each trajectory has the log-probabilities of the explicit weights its version names."""
    snapshots, batches = watched(trainer("random(unit=trajectory)", 3, lr=3e-3))
    seen = set()
    for batch in batches:
        for version in batch.version.unique().tolist():
            of_it = batch.mask & (batch.version == version)
            exact = logp(snapshots[version], batch)[of_it]
            torch.testing.assert_close(batch.behavior_logp[of_it], exact, rtol=0, atol=2e-5)
            seen.add(version)
    assert len(seen) > 4


@pytest.mark.parametrize("cache", ["recompute", "keep"])
def test_inflight_reports_the_policy_that_drew_each_token(cache: str) -> None:
    """With a recomputed cache each token is exactly that of its version; with a kept one it is a hybrid's."""
    snapshots, batches = watched(trainer(f"inflight(cache={cache})", 5, task="walk", lr=3e-3))
    batch = batches[-1]
    assert batch.version[0, 0].tolist() == [v for v in range(3, 9) for _ in range(2)]
    gap = 0.0
    for version in range(3, 9):
        of_it = batch.version == version
        gap = max(gap, float((batch.behavior_logp - logp(snapshots[version], batch))[of_it].abs().max()))
    assert gap < 2e-5 if cache == "recompute" else 1e-4 < gap < 1
    first = batch.version == 3
    torch.testing.assert_close(batch.behavior_logp[first], logp(snapshots[3], batch)[first], rtol=0, atol=2e-5)


def test_minibatch_has_a_proximal_policy_that_is_its_first() -> None:
    subject = trainer("minibatch", 3, method="clip(anchor=proximal)", lr=3e-3)
    batches = consumed(subject)
    first, last = batches[0], batches[3]
    assert first.proximal_logp is not None
    assert last.proximal_logp is not None
    torch.testing.assert_close(last.proximal_logp, last.behavior_logp, rtol=0, atol=2e-5)  # no mismatch: it sampled
    clipped = steps(subject)["share_clipped"]
    assert clipped[0] == clipped[4] == clipped[8] == 0
    assert max(clipped) > 0
    assert all(batch.proximal_logp is None for batch in consumed(trainer("minibatch", 3, steps=2)))
    with pytest.raises(UsageError, match="--regime minibatch"):
        trainer("fifo", 3, method="clip(anchor=proximal)")


@pytest.mark.parametrize("noise", ["0.1", "bf16", "fp16", "int8"])
def test_engine_noise_separates_mismatch_from_lag(noise: str) -> None:
    batch = consumed(trainer(f"fifo(engine_noise={noise})", 0, steps=2, prompts=16))[1]
    fresh = run(trainer(f"fifo(engine_noise={noise})", 0, steps=2, prompts=16), 1)
    gap = (batch.behavior_logp - logp(fresh.policy, batch))[batch.mask]
    assert set(batch.version.flatten().tolist()) == {1}
    if noise == "0.1":
        assert float(gap.std()) == pytest.approx(0.1, rel=0.1)
        assert abs(float(gap.mean())) < 0.02
    else:
        assert 1e-5 < float(gap.std()) < 0.2
        quantized = copy.deepcopy(fresh.policy)
        with torch.no_grad():
            for parameter in quantized.parameters():
                parameter.copy_(rounded(parameter, noise))
        exact = logp(quantized, batch)[batch.mask]
        torch.testing.assert_close(batch.behavior_logp[batch.mask], exact, rtol=0, atol=2e-5)


def test_the_gap_of_fp16_is_an_eighth_of_that_of_bf16() -> None:
    """Three more bits of mantissa; the same factor is reported of language models (Fast-LLM 525)."""
    gaps = {}
    for noise in ("bf16", "fp16"):
        policy = run(trainer(f"fifo(engine_noise={noise})", 0, steps=2, prompts=16), 0)
        batch = consumed(trainer(f"fifo(engine_noise={noise})", 0, steps=2, prompts=16))[0]
        gaps[noise] = float((batch.behavior_logp - logp(policy.policy, batch))[batch.mask].std())
    assert 4 < gaps["bf16"] / gaps["fp16"] < 16


def test_a_head_in_full_precision_is_the_only_part_not_rounded() -> None:
    subject = trainer("fifo(engine_noise=bf16-fp32head)", 0, steps=2)
    published = PublishedPolicy(subject.policy, 1, "bf16-fp32head", 0)
    published.publish(0)
    held, head = dict(published.policy.named_parameters()), subject.policy.output_head().weight
    for name, weight in subject.policy.named_parameters():
        expected = weight if weight is head or name == "head.bias" else rounded(weight, "bf16")
        assert torch.equal(held[name], expected), name
    assert not torch.equal(rounded(head, "bf16"), head)


def test_rounding_keeps_what_low_precision_holds() -> None:
    weight = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(rounded(weight, ""), weight)
    assert torch.equal(rounded(weight, "bf16"), weight.bfloat16().float())
    assert torch.equal(rounded(weight, "fp16"), weight.half().float())
    eight = rounded(weight, "int8")
    assert all(len(row.unique()) <= 255 for row in eight)
    assert float(((eight - weight).abs() / weight.abs().amax(1, keepdim=True)).max()) <= 0.5 / 127 + 1e-6
    assert torch.equal(rounded(weight[0], "int8"), weight[0])


def test_replayed_groups_keep_their_origin_and_their_versions() -> None:
    subject = trainer("replay(0.67)", 3, record="full")
    run(subject)
    samples = subject.recorder.tables["samples.parquet"].columns
    rows = list(zip(samples["step"], samples["batch"], samples["version_oldest"], samples["prompt"], strict=True))
    assert all(batch == version for _, batch, version, _ in rows)
    for update, of_update in itertools.groupby(rows, key=lambda row: row[0]):
        batches = [batch for _, batch, _, _ in of_update]
        assert batches.count(update) == (12 if update == 0 else 4)
        assert min(batches) >= update - 3


def test_a_wrong_lag_is_caught() -> None:
    subject = run(trainer("random", 3), 3)
    assert isinstance(subject.source, PlannedSource)
    for batch in subject.source.queue.values():
        batch.version.fill_(3)
    with pytest.raises(AssertionError, match="realized lag"):
        run(subject, 6)
