"""Declared versions: the test keeps its false-alarm rate, and each way a push goes wrong is found and named."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import call
from faulty_pushes import CopyEngine, PartialPush, RankBehind, SkippedPush, StalePrefixCache
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.source import PlannedSource
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.verify import Canaries, VersionVerdict, verify_cell
from vcpo_bench.bench.replay.verify.findings import explained, judge, p_value, spans
from vcpo_bench.bench.replay.verify.stored import StoredRun, _by_version, _Rows
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.errors import UsageError

pytestmark = pytest.mark.usefixtures("no_evaluations")

T, VOCABULARY = 8, 12


def test_the_p_value_is_the_share_of_arrangements() -> None:
    """Three tested and two honest values: the largest is tested in 3/5 of all orders, the two largest in 3/5 * 2/4."""
    assert [p_value(3, 2, k) for k in range(4)] == pytest.approx([1, 0.6, 0.3, 0.1])
    assert p_value(64, 256, 64) < 1e-60


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_false_alarms_are_as_rare_as_stated(level: float) -> None:
    random, trials = np.random.default_rng(0), 4000
    alarms = sum(judge("x", values[:64], values[64:], level).false for values in random.lognormal(-5, 2, (trials, 320)))
    assert alarms / trials <= level + 3 * np.sqrt(level / trials)
    assert alarms, "a level that is never reached is not the stated one"


def test_what_float32_rounds_is_no_evidence() -> None:
    assert not judge("x", np.full(64, 9e-6), np.full(256, 1e-7), 1e-3).false
    assert judge("x", np.full(64, 2e-5), np.full(256, 1e-7), 1e-3).false
    assert judge("x", np.full(64, np.nan), np.full(256, 1e-7), 1e-3).false


def test_too_few_honest_answers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot reach 0\.001"):
        judge("x", np.zeros(3), np.zeros(4), 1e-3)


def test_rows_are_named_in_spans() -> None:
    assert spans([0, 1, 2, 5, 7, 8]) == "trajectories 0-2, 5, 7-8"
    few = judge("x", np.r_[np.zeros(56), np.ones(8)], np.zeros(256), 1e-3)
    assert "version 3 sampled trajectories 56-63" in explained(few, 4, {3: np.zeros(64), 5: np.ones(64)}).text()


def policy() -> TinyPolicy:
    made = TinyPolicy(PolicyConfig(VOCABULARY, 4 + T), seed=1)
    with torch.no_grad():
        made.head.weight.mul_(6)
    return made


def prompts(index: int) -> Tensor:
    return torch.randint(VOCABULARY, (8, 4), generator=torch.Generator().manual_seed(index))


def pushed(engine: CopyEngine, learner: TinyPolicy, pushes: int, noise: float = 0.0) -> Iterator[VersionVerdict]:
    """Findings after each push, while the learner's weights drift like those of a run."""
    generator = torch.Generator().manual_seed(5)

    def generate(asked: Tensor, draws: Tensor) -> Rollout:
        rollout = engine.generate(asked, draws, None)
        rollout.logp.add_(noise * torch.randn(rollout.logp.shape, generator=generator))
        return rollout

    canaries = Canaries(learner, prompts, T)
    canaries.learn(generate)
    for version in range(1, pushes + 1):
        with torch.no_grad():
            for weight in learner.parameters():
                weight.add_(3e-3 * torch.randn(weight.shape, generator=generator))
        engine.set_weights(learner.named_parameters(), version)
        yield canaries.check(generate, version)


@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_honest_pushes_raise_no_alarm_with_another_engines_rounding_too(noise: float) -> None:
    learner = policy()
    assert not any(finding.false for finding in pushed(CopyEngine(learner), learner, 20, noise))


@pytest.mark.parametrize("noise", [0.0, 0.005])
@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (SkippedPush, "version 1 sampled them: the push of 2 did not arrive"),
        (PartialPush, "no stored version fits: part of a push"),
        (RankBehind, r"version 1 sampled trajectories .*31.*: a part of the sampler, such as a rank, is behind"),
    ],
)
def test_a_push_that_goes_wrong_is_found_and_named(fault: type[CopyEngine], cause: str, noise: float) -> None:
    learner = policy()
    first, second, third = pushed(fault(learner, at=2), learner, 3, noise)
    assert not first.false
    assert second.false
    if not noise or fault is not RankBehind:  # with noise, single trajectories of a rank look honest
        assert re.search(cause, second.text()), second.text()
    assert not third.false


def test_a_stale_prefix_cache_is_found_and_named() -> None:
    learner = policy()
    for finding in pushed(StalePrefixCache(learner), learner, 3):
        assert finding.false
        assert "a stale prefix cache" in finding.text()


def recorded(folder: Path, engine: type[CopyEngine] | None, regime: str = "fifo", **more: object) -> RecordedCell:
    """A cell that keeps every checkpoint, with the push before update 3 going wrong."""
    settings = {"task": "walk", "prompts": 4, "responses": 8, "steps": 6, "eval_every": 100, "lr": 1e-3} | more
    config = CellConfig(method="clip", regime=regime, staleness=2, seed=1, **settings)  # type: ignore[arg-type]
    trainer = build_trainer(config)
    if engine is not None:
        assert isinstance(trainer.source, PlannedSource)
        published = trainer.source.generator.published
        assert isinstance(trainer.policy, TinyPolicy)
        published.sampler = engine(trainer.policy, at=3)
    for step in range(1, 7):
        trainer.advance()
        kept = folder / "checkpoints" / f"{step:08d}"
        kept.mkdir(parents=True)
        trainer.save(kept)
    trainer.close()
    return RecordedCell(folder, trainer.key, config, 6, None)


@pytest.mark.parametrize(
    "regime",
    [
        "fifo",
        "fifo(engine_noise=bf16)",
        pytest.param("fifo(engine_noise=0.05)", marks=pytest.mark.slow),
        "fifo(mask_replay=on,top_p=0.8)",
        "inflight(cache=recompute)",
        "async(clock=virtual,slots=2)",
    ],
)
def test_an_honest_run_is_true(tmp_path: Path, regime: str) -> None:
    found = list(verify_cell(recorded(tmp_path, None, regime)))
    assert not [finding.text() for finding in found if finding.false]
    assert sum(finding.what.startswith("canaries") for finding in found) == 6
    assert sum(finding.what.startswith("version") for finding in found) >= 3


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (SkippedPush, "version 2 sampled them: the push of 3 did not arrive"),
        (PartialPush, "no stored version fits"),
        (RankBehind, "version 2 sampled trajectories 16-31: a part of the sampler"),
    ],
)
def test_a_false_version_in_the_queue_is_found_and_named(tmp_path: Path, fault: type[CopyEngine], cause: str) -> None:
    found = {finding.what: finding for finding in verify_cell(recorded(tmp_path, fault), canaries=False)}
    assert [what for what, finding in found.items() if finding.false] == ["version 3"]
    assert cause in found["version 3"].text()


def test_the_first_versions_give_the_tolerance_of_another_engine(tmp_path: Path) -> None:
    cell = recorded(tmp_path, SkippedPush)
    found = {finding.what: finding.false for finding in verify_cell(cell, honest=2, canaries=False)}
    assert "version 0" not in found
    assert [what for what, false in found.items() if false] == ["version 3"]


@pytest.mark.parametrize(("mixed", "rows"), [(True, {3: 2, 4: 2}), (False, {3: 1, 4: 1})])
def test_a_hybrid_of_two_versions_is_left_out_where_no_weights_reproduce_it(mixed: bool, rows: dict[int, int]) -> None:
    """One trajectory of version 3, one of 4, and one over both; the fourth token of each is not drawn."""
    version = torch.tensor([[3, 3, 3, -1], [4, 4, 4, -1], [3, 4, 4, -1]])
    tokens = torch.zeros(3, 4, dtype=torch.int64)
    given = Responses(tokens[:, :2], tokens, version >= 0)
    found = dict(_by_version(_Rows(given, torch.zeros(3, 4), version), mixed))
    assert {each: len(part.reported) for each, part in found.items()} == rows
    assert all(bool(part.counted.any(1).all()) for part in found.values())


def test_a_response_that_was_in_flight_and_then_waited_counts_once(tmp_path: Path) -> None:
    """Half of each response is drawn two updates before its use, and half one update before."""
    cell = recorded(tmp_path, None, "inflight(cache=recompute,every=6)")
    found = StoredRun(cell).declared(mixed=True)
    rows = cell.config.prompts * cell.config.responses
    assert [len(found[version].reported) for version in (1, 2, 3)] == [2 * rows] * 3


def test_what_cannot_be_verified_is_refused(tmp_path: Path) -> None:
    cell = recorded(tmp_path / "cut", None, "fifo(top_p=0.8)")
    with pytest.raises(UsageError, match="mask_replay=on"):
        list(verify_cell(cell))
    bare = RecordedCell(tmp_path / "bare", cell.key, cell.config, 6, None)
    with pytest.raises(UsageError, match="--keep-checkpoints every=1"):
        list(verify_cell(bare))


def test_a_test_that_could_not_be_one_is_refused(tmp_path: Path) -> None:
    cell = recorded(tmp_path / "cell", None)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"sample": 4}, "--sample 4: a test needs at least 8"),
        ({"honest": -1}, "--honest -1: .* declares 6 versions"),
        ({"honest": 6}, "leave some to test"),
        ({"alpha": 0.0}, "cannot reach 0; give a larger --honest, --sample or --alpha"),
    ]
    for asked, said in refused:
        with pytest.raises(UsageError, match=said):
            list(verify_cell(cell, canaries=False, **asked))
    small = recorded(tmp_path / "small", None, prompts=1, responses=2)
    with pytest.raises(UsageError, match="no push is checked; drop --no-canaries"):
        list(verify_cell(small, canaries=False))


def test_the_command_says_one_line_per_version_and_fails_on_a_false_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vcpo_bench.bench.replay import recorded_cell

    cell = recorded(tmp_path, SkippedPush)
    monkeypatch.setattr(recorded_cell, "read_cell", lambda *_, **__: cell)
    shown = call("lab", "audit-lag", str(tmp_path), "--no-canaries")
    assert shown.exit_code == 1
    assert "version 3 is FALSE: 32 of 32 trajectories" in shown.output
    assert shown.output.splitlines()[-1] == "6 tests: 1 FALSE (alpha 0.001)"
