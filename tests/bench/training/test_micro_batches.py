"""Cutting batches by tokens, and putting the pieces together again."""

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.micro_batches import cut, gather
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import parse_method


def batch() -> Trajectories:
    """3 prompts of 4 tokens with 2 responses of 1 to 6 tokens."""
    lengths = torch.tensor([[1, 6], [3, 2], [6, 5]])
    mask = torch.arange(6) < lengths[:, :, None]
    number = torch.arange(6).view(3, 2)
    return Trajectories(
        index=5,
        prompts=torch.arange(3)[:, None].expand(3, 4),
        responses=number[:, :, None].expand(3, 2, 6).clone(),
        behavior_logp=torch.zeros(3, 2, 6),
        mask=mask,
        reward=number.double(),
        version=torch.zeros(3, 2, 6, dtype=torch.int64),
    )


@pytest.mark.parametrize("tokens", [1, 10, 21, 40, 59])
def test_pieces_by_tokens_hold_every_row_once_and_stay_within_the_budget(tokens: int) -> None:
    pieces = cut(batch(), tokens=tokens)
    rows = torch.cat([piece.rows for piece in pieces])
    assert sorted(rows.tolist()) == list(range(6))
    for part, own in pieces:
        longest = 4 + int(part.mask.sum(-1).max())
        assert len(own) == 1 or len(own) * longest <= tokens
        assert torch.equal(part.reward.flatten().long(), own)
        assert torch.equal(part.flat().each.prompts[:, 0], own // 2)
        assert torch.equal(part.responses[:, 0, 0], own)
    together = gather(pieces, [part.reward.flatten() for part, _ in pieces])
    assert torch.equal(together, batch().reward.flatten())


def test_a_batch_within_the_budget_is_not_cut() -> None:
    whole = batch()
    assert cut(whole, tokens=60)[0].part is whole
    assert len(cut(whole, tokens=60)) == 1


def test_rows_of_like_length_go_together() -> None:
    rows = [piece.rows for piece in cut(batch(), tokens=20)]
    assert [own.tolist() for own in rows if isinstance(own, torch.Tensor)] == [[1, 4], [5, 2], [3, 0]]


@pytest.mark.parametrize("method", ["clip", "vcpo", "clip+entropy(beta=0.01)"])
def test_the_update_does_not_depend_on_the_micro_batches(method: str) -> None:
    gradients = []
    for tokens in (0, 70):
        trainer = build_trainer(CellConfig(method=method, staleness=0, seed=0, task="walk-eos", prompts=3, responses=4))
        trainer.learner = Learner(trainer.policy, parse_method(method), LearnerSettings(3e-4, micro_tokens=tokens))
        trainer.advance()
        gradients.append(torch.cat([p.grad.flatten() for p in trainer.policy.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-6)
