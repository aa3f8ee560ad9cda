"""The gradient from what score norms left against a second forward and backward pass, and what memory allows."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vcpo_bench.adapters.trl.reuse import Budget, Kept, loss_from, row_weights
from vcpo_bench.bench.score_norms import ScoreNorms

B, T, V = 4, 6, 9


class Tiny(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(V, 8), nn.Dropout(dropout)
        self.inner, self.norm, self.head = nn.Linear(8, 12), nn.LayerNorm(12), nn.Linear(12, V)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(torch.tanh(self.inner(self.drop(self.embedding(ids))))))  # type: ignore[no-any-return]


def batch(seed: int = 0) -> tuple[Tiny, Tensor, Tensor]:
    torch.manual_seed(seed)
    mask = torch.arange(T) < torch.tensor([[6], [3], [0], [5]])
    return Tiny().double(), torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed)), mask


def logp_of(model: nn.Module, ids: Tensor) -> Tensor:
    found: Tensor = model(ids).log_softmax(-1).gather(-1, ids.roll(-1, 1).unsqueeze(-1)).squeeze(-1)
    return found


def kept_of(model: nn.Module, ids: Tensor, mask: Tensor) -> Kept:
    norms = ScoreNorms(model)
    with norms.record():
        logp = logp_of(model, ids)
    norms.squared_norms(logp, mask)
    kept = Kept(norms.contributions(), logp.detach())
    norms.close()
    return kept


def gradient(model: nn.Module) -> list[Tensor]:
    found = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    return [each for each in found if each is not None]


def test_loss_and_gradient_are_those_of_a_second_pass() -> None:
    model, ids, mask = batch()
    coefficients = torch.tensor([0.7, -1.3, 0.4, 0.0], dtype=torch.float64).unsqueeze(1) * mask
    kept = kept_of(model, ids, mask)
    found = loss_from(kept, coefficients, mask, list(model.parameters()))
    assert found is not None
    (found / 3).backward()
    own = gradient(model)
    plain = -(coefficients * logp_of(model, ids)).sum()
    (plain / 3).backward()
    assert found.item() == pytest.approx(plain.item(), rel=1e-12)
    for one, other in zip(own, gradient(model), strict=True):
        assert torch.allclose(one, other, rtol=1e-11, atol=1e-14)


def test_coefficients_that_differ_within_a_row_need_a_second_pass() -> None:
    model, ids, mask = batch()
    coefficients = mask.double()
    weights = row_weights(coefficients, mask)
    assert weights is not None
    assert weights.tolist() == [1, 1, 0, 1]
    coefficients[0, 2] = 0.5
    assert row_weights(coefficients, mask) is None
    assert loss_from(kept_of(model, ids, mask), coefficients, mask, list(model.parameters())) is None


def trainer_of(model: nn.Module, ranks: int = 1, fp16: bool = False) -> Any:
    return SimpleNamespace(
        model=model, accelerator=SimpleNamespace(num_processes=ranks), args=SimpleNamespace(fp16=fp16)
    )


@pytest.mark.parametrize(("ranks", "fp16", "dropout"), [(2, False, 0.0), (1, True, 0.0), (1, False, 0.1)])
def test_nothing_is_kept_where_the_known_gradient_would_not_be_the_trainers(
    ranks: int, fp16: bool, dropout: float
) -> None:
    _, ids, mask = batch()
    model = Tiny(dropout).eval()
    assert not Budget(trainer_of(model, ranks, fp16)).admits(kept_of(model, ids, mask).contributions, first=True)


def test_dropout_in_the_configuration_counts() -> None:
    model: Any = Tiny()
    model.config = SimpleNamespace(attention_dropout=0.0, resid_pdrop=0.1)
    assert not Budget(trainer_of(model)).possible


def test_the_first_micro_batch_is_always_kept_and_others_up_to_the_size_of_the_weights() -> None:
    model, ids, mask = batch()
    left = kept_of(model, ids, mask).contributions
    size, weights = sum(each.nbytes for each in left), sum(each.nbytes for each in model.parameters())
    assert size > 0
    budget = Budget(trainer_of(model))
    for _ in range(2):
        budget.start()
        admitted = [budget.admits(left, first=False) for _ in range(weights // size + 2)]
        assert admitted == [True] * (weights // size) + [False] * 2
        assert budget.admits(left, first=True)
