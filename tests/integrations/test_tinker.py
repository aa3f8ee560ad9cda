"""What a real Tinker server computes: its log-probabilities, and its steps against our own learner."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from tinker_cells import random_rewards
from tinker_runs import AGREEMENT, METHODS, RANK, config, facts_of, run
from tinker_server import TinkerServer

from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.learners.tinker_api import service
from vcpo_bench.bench.learners.tinker_api.policy import TinkerPolicy
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.training import learner as own_learner
from vcpo_bench.bench.training.build import build_learner, build_trainer
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.methods import parse_method


def read_adapters(server: TinkerServer, policy: TinkerPolicy, own: Policy) -> dict[str, torch.Tensor]:
    """The adapters that the server published last, under the names of our policy."""
    given = server.published(str(policy.trained.model_id))[-1]
    theirs = {name.rpartition("model.layers")[2]: tensor for name, tensor in given.items()}
    names = [name for name, _ in own.named_parameters(remove_duplicate=False) if "lora_" in name]
    assert len(names) == len(theirs)
    return {name: theirs[name.rpartition("model.layers")[2].replace(".default.weight", ".weight")] for name in names}


def share_inputs(policy: Any, adapters: dict[str, torch.Tensor]) -> None:
    """Share the first half of adapters that read the same input, as this server does, which fuses those layers."""
    for layer in policy.network.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for first, other in (
            (attention.q_proj, attention.k_proj),
            (attention.q_proj, attention.v_proj),
            (mlp.gate_proj, mlp.up_proj),
        ):
            other.lora_A["default"].weight = first.lora_A["default"].weight
    shared = adapters.keys() - dict(policy.named_parameters()).keys()
    assert len(shared) == 3 * len(policy.network.model.layers)
    for name in shared:
        first = name.replace("k_proj", "q_proj").replace("v_proj", "q_proj").replace("up_proj", "gate_proj")
        assert torch.equal(adapters[name], adapters[first])


def test_log_probabilities_at_lag_0_are_those_of_the_learner_and_of_torch(server: TinkerServer) -> None:
    here = config(server.model, learner="torch", sampler="torch")
    own = build_learner(here, open_policy(here, open_task(here, server.model), server.model))
    with closing(build_trainer(config(server.model), start=server.model)) as trainer:
        batch = trainer.source.next_batch(0).batch
        served = trainer.learner.logp(batch)
    print("sampler and forward differ by", float((served - batch.behavior_logp).abs().max()))
    assert float((served - batch.behavior_logp).abs().max()) <= AGREEMENT
    assert float((own.logp(batch) - served).abs().max()) <= 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_updates_are_those_of_our_own_learner_on_the_same_adapters(
    method: str, server: TinkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four updates at lag 2 on the same batches, the server's adapters copied into ours at the start.

    Nothing is clipped, because the server does not. AdamW has an eps that keeps the rounding of gradients near zero
    from becoming whole steps. Compared: coefficients, gradient norms, log-probabilities; at the end the adapters.
    """
    monkeypatch.setattr(own_learner, "GRAD_CLIP", 1e9)
    settings = {"method": method, "staleness": 2, "lr": 1e-2, "optimizer": "adamw(eps=0.001)", "weight_decay": 0.1}
    here = config(server.model, **settings, learner="torch", sampler="torch", lora=RANK)
    policy = open_policy(here, open_task(here, server.model), server.model)
    with closing(build_trainer(config(server.model, **settings), start=server.model)) as trainer:
        assert isinstance(trainer.policy, TinkerPolicy)
        batch = random_rewards(trainer.source.next_batch(0).batch)
        start = read_adapters(server, trainer.policy, policy)
        share_inputs(policy, start)
        policy.load_trained({name: start[name] for name in policy.trained_state()})
        own = build_learner(here, policy)
        for update in range(4):
            theirs, ours = trainer.learner.update(batch, update), own.update(batch, update)
            same(theirs, ours)
            batch = random_rewards(trainer.source.next_batch(update + 1).batch)  # publishes the weights of this update
        moved = read_adapters(server, trainer.policy, policy)
    off = torch.cat([(moved[name] - now).flatten() for name, now in policy.trained_state().items()])
    far = torch.cat([(now - start[name]).flatten() for name, now in policy.trained_state().items()])
    print(method, "change of the adapters:", float(far.norm()), "difference:", float(off.norm()))
    assert float(far.norm()) > 0.1
    assert float(off.norm()) <= 1e-4 * float(far.norm())


def same(theirs: LearnerStep, ours: LearnerStep) -> None:
    """Two learners saw the same and did the same."""
    assert theirs.update is not None
    assert ours.update is not None
    largest = float(ours.update.coefficients.abs().max())
    assert float((theirs.update.coefficients - ours.update.coefficients).abs().max()) <= 1e-3 * largest
    assert theirs.made.scale == pytest.approx(ours.made.scale, rel=1e-3)
    assert theirs.made.norm == pytest.approx(ours.made.norm, rel=1e-3)
    assert float((theirs.logp - ours.logp).abs().max()) <= 1e-3


def test_coefficients_have_their_signs_and_sizes(server: TinkerServer) -> None:
    """Twice the coefficients, twice the gradient; the sign of each row decides where its probability goes."""
    with closing(build_trainer(config(server.model, lr=1e-3), start=server.model)) as trainer:
        policy = trainer.policy
        assert isinstance(policy, TinkerPolicy)
        batch = trainer.source.next_batch(0).batch
        before = policy.score(batch.flat()).logp
        sign = torch.where(torch.arange(len(before)) % 2 == 0, 1.0, -1.0).unsqueeze(1)
        coefficients = torch.where(batch.flat()[2], sign / len(before), 0.0)
        once = policy.step(batch.flat(), before, coefficients, 0.0, 1e9)
        twice = policy.step(batch.flat(), before, 2 * coefficients, 0.0, 1e9)
        assert twice == pytest.approx(2 * once, rel=1e-4)
        for _ in range(8):
            now = policy.score(batch.flat()).logp
            policy.step(batch.flat(), now, coefficients, 3e-3, 1e9)
        moved = (policy.score(batch.flat()).logp - before).sum(1)
    assert float(moved[0::2].mean()) > 0 > float(moved[1::2].mean())


def test_no_server_is_one_line(server: TinkerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(service.URL_VARIABLE, "http://someone:secret@127.0.0.1:9")
    cell = config(server.model)
    assert run(cell, server.model, tmp_path) == "error"
    facts = facts_of(tmp_path, cell)
    assert "--url http://127.0.0.1:9: no Tinker server answers" in facts["reason"]
    assert "secret" not in json.dumps(facts)


def test_methods_named_in_the_study_can_be_served() -> None:
    assert all("score_norm_sq" not in parse_method(method).needs for method in METHODS)
