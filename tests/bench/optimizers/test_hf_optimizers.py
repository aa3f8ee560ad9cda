"""Optimizers of language models: which matrices Muon takes, also with tied embeddings and adapters; resuming."""

from pathlib import Path

import hf_models
import pytest
import torch
from torch import nn

from vcpo_bench.bench.optimizers.muon import hidden_matrices
from vcpo_bench.bench.policies.hf.loading import add_adapters


@pytest.mark.parametrize("tied", [False, True])
def test_muon_leaves_embeddings_and_head_to_adamw(tied: bool) -> None:
    policy = hf_models.policy("llama", tie_word_embeddings=tied)
    matrices = {name for name, parameter in policy.named_parameters() if parameter.ndim == 2}
    hidden = {id(parameter) for parameter in hidden_matrices(policy)}
    left = {name for name in matrices if id(dict(policy.named_parameters())[name]) not in hidden}
    assert len(left) == (1 if tied else 2)
    assert all("embed_tokens" in name or "lm_head" in name for name in left)


def test_muon_takes_the_matrices_of_adapters() -> None:
    policy = hf_models.policy("llama")
    pytest.importorskip("peft", reason="runs in .ci/integrations hf")
    add_adapters(policy.network, 2)
    hidden, trained = hidden_matrices(policy), policy.trainable()
    assert [id(one) for one in hidden] == [id(one) for one in trained]
    assert all(isinstance(one, nn.Parameter) and 2 in one.shape for one in hidden)


@pytest.mark.parametrize("model", [{}, {"lora": 2}])
@pytest.mark.parametrize("optimizer", ["muon", "sgd(momentum=0.9)"])
def test_a_resumed_cell_has_the_bits_of_one_that_was_not_stopped(
    model: dict[str, int], optimizer: str, tmp_path: Path
) -> None:
    if model:
        pytest.importorskip("peft", reason="runs in .ci/integrations hf")
    folder = hf_models.save(tmp_path / "model")
    whole, resumed = (hf_models.trainer(folder, optimizer=optimizer, **model) for _ in range(2))
    whole.advance()
    (tmp_path / "state").mkdir()
    whole.save(tmp_path / "state")
    resumed.load(tmp_path / "state")
    whole.advance()
    resumed.advance()
    ours, theirs = whole.learner.tensors(), resumed.learner.tensors()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
