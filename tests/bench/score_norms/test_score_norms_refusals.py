"""Where exact norms are impossible, an error says why and what to do."""

import pytest
import torch
from score_norms_net import B, D, Mixing, Net, V, log_softmax_of, some_tokens
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vcpo_bench.bench.score_norms import InexactError, ScoreNorms


def test_a_model_used_in_another_way_than_before_is_refused() -> None:
    model, tokens = Net(nn.Linear(D, D)), some_tokens()
    norms = ScoreNorms(model)
    for detached in (False, True):
        with norms.record():
            x = model.tokens(tokens)
            shift = (x.detach() if detached else x).requires_grad_()
            logp = model.head(model.middle(shift)).log_softmax(-1)[..., 0] + (0 if detached else 0 * x.sum(-1))
        if detached:
            with pytest.raises(InexactError, match="used in another way than before"):
                norms.squared_norms(logp)
        else:
            norms.squared_norms(logp)


@pytest.mark.filterwarnings("ignore:None of the inputs")
def test_refusals() -> None:
    tokens = some_tokens()

    class TimeFirst(Net):
        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(self.middle(self.tokens(tokens.t()))).transpose(0, 1)

    class Reentrant(Net):
        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(checkpoint(self.middle, self.tokens(tokens), use_reentrant=True))

    cases: list[tuple[nn.Module, Tensor, str]] = [
        (TimeFirst(nn.Linear(D, D)), tokens, "must be the trajectory"),
        (TimeFirst(nn.Linear(D, D)), tokens[:, :B], "is not the trajectory.* separate forward passes"),
        (Mixing(nn.Linear(D, D)), tokens, "influence each other.* separate forward passes"),
        (Reentrant(nn.Linear(D, D)), tokens, "use_reentrant=False"),
    ]
    for model, rows, reason in cases:
        norms = ScoreNorms(model)
        with pytest.raises(InexactError, match=reason):
            with norms.record():
                logp = log_softmax_of(model, rows)
            norms.squared_norms(logp)
    with pytest.raises(InexactError, match=r"batch normalization mixes .* use LayerNorm, or eval\(\)"):
        ScoreNorms(nn.BatchNorm1d(D))
    for option in ({"sparse": True}, {"scale_grad_by_freq": True}, {"max_norm": 1.0}):
        with pytest.raises(InexactError, match="sparse has no score norm: turn it off"):
            ScoreNorms(nn.Embedding(V, D, **option))


def test_freezing_after_inspection_is_refused() -> None:
    model = Net(nn.Linear(D, D))
    norms = ScoreNorms(model)
    model.middle.requires_grad_(False)
    with pytest.raises(InexactError, match="create a new ScoreNorms"), norms.record():
        pass


def test_compiled_and_sharded_models_are_refused() -> None:
    model = Net(nn.Linear(D, D))
    with pytest.raises(InexactError, match=r"is compiled, .* as it was before"):
        ScoreNorms(torch.compile(model, backend="eager"))
    model.middle.compile(backend="eager")
    with pytest.raises(InexactError, match=r"'middle' is compiled"):
        ScoreNorms(model)
    sharded = nn.Linear(D, D)
    sharded.weight.placements = ()  # as a DTensor has
    with pytest.raises(InexactError, match="'weight' is sharded: unshard the model first"):
        ScoreNorms(sharded)
