"""Language models whose vocabulary is large: score norms without all logits, and the updates made of them."""

from pathlib import Path
from typing import Any

import hf_models
import pytest
import torch
from hf_models import EOS, PAD, TASK
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.scores import ChunkedScores, DenseScores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.trajectories import Responses

PROMPTS = torch.tensor([[PAD, PAD, PAD, 5, 6], [7, PAD, 8, 9, 10], [PAD, 11, 12, 13, 14]])
DRAWS = torch.rand(12, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
SMALL = 4 * 99 * 10
"""Bytes of the logits of ten tokens."""


@pytest.mark.parametrize(
    ("kind", "tied", "dtype"),
    [
        ("llama", True, torch.float32),
        ("llama", False, torch.float32),
        ("qwen2", True, torch.float32),
        ("gpt2", True, torch.float32),
        ("llama", True, torch.bfloat16),
    ],
)
def test_scores_norms_and_gradients_are_those_of_the_dense_way(kind: str, tied: bool, dtype: torch.dtype) -> None:
    policy = hf_models.policy(kind, dtype=dtype, tie_word_embeddings=tied)
    rollout = policy.sample(Draw(PROMPTS, DRAWS, EOS))
    rollout.mask[2] = False
    weights = torch.linspace(-1, 1, 12)
    rough = 1e-4 if dtype == torch.float32 else 5e-2
    found: dict[type, tuple[Any, ...]] = {}
    for size in (2**27, SMALL):
        policy.chunked_head.vocabulary.chunk_bytes = size
        norms = ScoreNorms(policy)
        with norms.record():
            scores = policy.score_rows(Responses(PROMPTS.repeat_interleave(4, 0), rollout.responses, rollout.mask))
        squared = norms.squared_norms(scores.logp, scores.mask)
        norms.assemble(weights)
        gradient = torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])
        found[type(scores)] = (squared, gradient, scores.logp.detach(), scores.entropy, scores.sum_pi_sq)
        policy.zero_grad()
        norms.close()
    for chunked, dense in zip(found[ChunkedScores], found[DenseScores], strict=True):
        torch.testing.assert_close(chunked, dense, rtol=rough, atol=rough * float(dense.abs().max()))


def test_later_padding_is_not_scored() -> None:
    policy = hf_models.policy("llama")
    policy.chunked_head.vocabulary.chunk_bytes = 1
    responses, mask = torch.full((3, 20), 4), torch.arange(20).expand(3, 20) < torch.tensor([[3], [7], [0]])
    scores = policy.score_rows(Responses(PROMPTS, responses, mask))
    assert scores.logp.shape == (3, 20)
    assert not scores.logp[~mask].any()
    torch.testing.assert_close(scores.logp, policy.score(Responses(PROMPTS, responses, mask)).logp, rtol=0, atol=1e-5)


def trained(folder: Path, size: int, method: str, **config: Any) -> tuple[list[LearnerStep], Tensor]:
    """What three updates did, at lag 1, and the weights they led to."""
    settings = {"task": TASK, "prompts": 3, "responses": 4, "steps": 3, "eval_every": 100, "lr": 1e-3} | config
    cell = CellConfig(method=method, staleness=1, seed=0, model="tiny@0", **settings)
    trainer = build_trainer(cell, start=folder)
    trainer.policy.chunked_head.vocabulary.chunk_bytes = size
    steps: list[LearnerStep] = []
    update = trainer.learner.update

    def watched(*args: Any) -> LearnerStep:
        steps.append(update(*args))
        return steps[-1]

    trainer.learner.update = watched  # type: ignore[method-assign]
    for _ in range(3):
        trainer.advance()
    return steps, torch.cat([p.detach().flatten() for p in trainer.policy.trainable()])


@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("vcpo", {}),
        ("vcpo", {"micro_tokens": 60}),
        ("vcpo", {"lora": 2}),
        ("clip+opob", {"checkpointing": True}),
    ],
)
def test_a_cell_learns_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, config: dict[str, Any]
) -> None:
    monkeypatch.setattr(Arithmetic, "score", lambda self, item, text: (sum(map(ord, text)) % 5) / 4)
    folder = hf_models.save(tmp_path, tie_word_embeddings=True)
    (dense, wanted), (chunked, weights) = (trained(folder, size, method, **config) for size in (2**27, SMALL))
    for ours, theirs in zip(chunked, dense, strict=True):
        assert ours.update is not None
        assert theirs.update is not None
        assert ours.score_norm_sq is not None
        assert theirs.score_norm_sq is not None
        torch.testing.assert_close(ours.score_norm_sq, theirs.score_norm_sq, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(ours.update.coefficients, theirs.update.coefficients, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(weights, wanted, rtol=1e-3, atol=1e-4)
