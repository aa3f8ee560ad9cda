"""What the learner tells a method about the drift of its weights, against snapshots; and that a resume keeps it."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.records import STEPS_FILE

pytestmark = pytest.mark.usefixtures("no_evaluations")

RULES = ["reinforce+gap-aware", "reinforce+dc-asgd", "reinforce+drift-cap", "reinforce+update-norm(radius=0.01)"]


def small(method: str, staleness: int = 2, **more: object) -> Trainer:
    config = {"task": "walk-eos", "prompts": 2, "responses": 3, "steps": 8, "eval_every": 100} | more
    return build_trainer(CellConfig(method=method, staleness=staleness, seed=0, lr=1e-3, lr_warmup=0, **config))


def weights(trainer: Trainer) -> Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.policy.trainable()]).double()


def scales(trainer: Trainer) -> list[float]:
    return list(trainer.recorder.tables[STEPS_FILE].columns["step_scale"])


def watched(trainer: Trainer, seen: list[Batch]) -> None:
    """Let a trainer's method note every batch that it is given."""
    method = trainer.learner.method

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(method, name)

        def __call__(self, batch: Batch) -> object:
            seen.append(batch)
            return method(batch)

    trainer.learner.method = Watched()  # type: ignore[assignment]


@pytest.mark.parametrize("regime", ["fifo", "inflight", "fifo(publish_every=2)", "random"])
def test_distances_and_norms_are_those_of_snapshots(regime: str) -> None:
    trainer, seen = small("reinforce+gap-aware", 3, regime=regime), []
    watched(trainer, seen)
    snapshots, norm = [], 0.0
    for update in range(8):
        snapshots.append(weights(trainer))
        trainer.advance()
        batch = seen[-1]
        assert batch.update_norm == pytest.approx(norm, rel=1e-5)
        version = update - batch.lag()
        expected = [float((snapshots[update] - snapshots[v]).norm()) for v in version.flatten().tolist()]
        assert batch.parameter_distance is not None
        assert batch.parameter_distance.flatten().tolist() == pytest.approx(expected, rel=1e-5, abs=1e-9)
        norm = float((weights(trainer) - snapshots[update]).norm()) / scales(trainer)[-1]


def test_the_norm_is_that_of_the_full_rate_whatever_the_scale() -> None:
    """The first steps are equal, the second is shortened in one run: both would have been as long at the full rate."""
    free, held = small("reinforce+update-norm(radius=9)", 0), small("reinforce+update-norm(radius=0.001)", 0)
    for _ in range(2):
        free.advance()
        held.advance()
    assert scales(free) == [1.0, 1.0]
    assert scales(held)[1] < 0.2
    norms = [float(trainer.learner.tensors()["past/update_norm"]) for trainer in (free, held)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)


def test_only_versions_that_data_can_be_of_are_kept() -> None:
    trainer = small("reinforce+gap-aware", 2)
    for _ in range(6):
        trainer.advance()
    kept = [name for name in trainer.learner.tensors() if name.startswith("past/version/")]
    assert sorted(kept) == [f"past/version/{v}" for v in (3, 4, 5)]
    light = small("reinforce+update-norm", 2)
    for _ in range(3):
        light.advance()
    assert [name for name in light.learner.tensors() if "past/version" in name] == ["past/version/2"]
    assert not [name for name in small("reinforce").learner.tensors() if name.startswith("past/")]


def test_the_gradient_is_compensated_for_the_drift() -> None:
    plain = small("reinforce", prompts=6)
    for _ in range(3):
        plain.advance()
    state = copy.deepcopy(plain.learner.tensors())
    twin = small("reinforce+dc-asgd(strength=0)", prompts=6)
    snapshots = []
    for _ in range(3):
        snapshots.append(weights(twin))
        twin.advance()
    assert all(torch.equal(state[name], tensor) for name, tensor in twin.learner.tensors().items() if name in state)
    now = weights(twin)
    batch = plain.source.next_batch(3).batch
    assert set((3 - batch.oldest()).flatten().tolist()) == {2}
    gradients = []
    for trainer, strength in ((plain, 0.0), (twin, 3e4)):
        if strength:
            trainer.learner.method = parse_method(f"reinforce+dc-asgd(strength={strength})")
        done = trainer.learner.update(batch, 3)
        flat = torch.cat([p.grad.flatten() for p in trainer.policy.trainable() if p.grad is not None]).double()
        gradients.append(flat * max(done.made.norm, 1.0))  # as it was before it was clipped
    g, corrected = gradients
    expected = g + 3e4 * g * g * (now - snapshots[1])
    torch.testing.assert_close(corrected, expected, rtol=1e-3, atol=1e-6)
    assert float((corrected - g).norm() / g.norm()) > 0.05


@pytest.mark.parametrize("method", RULES)
def test_a_resumed_run_is_bit_identical(method: str, tmp_path: Path) -> None:
    whole = small(method)
    for _ in range(3):
        whole.advance()
    folder = tmp_path / "state"
    folder.mkdir()
    whole.save(folder)
    again = small(method)
    again.load(folder)
    for _ in range(2):
        whole.advance()
        again.advance()
    assert torch.equal(weights(whole), weights(again))
    assert scales(whole) == scales(again)
    first, second = whole.learner.tensors(), again.learner.tensors()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_rules_that_measure_act_within_a_run() -> None:
    for method in ("reinforce+gap-aware", "reinforce+drift-cap(local=0.01)", "reinforce+update-norm(radius=0.01)"):
        trainer = small(method)
        for _ in range(6):
            trainer.advance()
        assert scales(trainer)[0] == 1.0
        assert all(0 < scale < 1 for scale in scales(trainer)[3:])


def test_methods_without_such_a_rule_keep_nothing() -> None:
    asked = [sorted(parse_method(text).measures_drift) for text in (*RULES, "vcpo")]
    assert asked == [
        ["parameter_distance", "update_norm"],
        ["parameter_distance"],
        ["update_norm"],
        ["update_norm"],
        [],
    ]
