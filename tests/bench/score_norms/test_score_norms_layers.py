"""Every kind of layer, and every way of sharing parameters, against one backward per trajectory in float64."""

import pytest
import torch
from score_norms_layers import Conv1D
from score_norms_net import B, D, Net, Positioned, T, Through, V, check_net, log_softmax_of, some_tokens
from score_norms_oracle import check, recorded, slow_norms
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vcpo_bench.bench.score_norms import InexactError
from vcpo_bench.bench.score_norms.embedding import embedding_scale


class HubNorm(nn.Module):
    """A root-mean-square norm as model hubs write it; `plus` is Gemma's way."""

    def __init__(self, plus: float) -> None:
        super().__init__()
        self.weight, self.variance_epsilon, self.plus = nn.Parameter(torch.randn(D)), 1e-6, plus

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight + self.plus) * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon))


class LoRA(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base, self.down, self.up = nn.Linear(D, D), nn.Linear(D, 2, bias=False), nn.Linear(2, D, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 0.5 * self.up(self.down(x))


@pytest.mark.parametrize(
    "middle",
    [
        nn.LayerNorm(D),
        nn.LayerNorm(D, bias=False),
        nn.RMSNorm(D),
        HubNorm(0.0),
        HubNorm(1.0),
        nn.Linear(D, D),
        nn.Linear(D, D, bias=False),
        Conv1D(nn.Parameter(torch.randn(D, D))),
        LoRA(),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.filterwarnings("error")
def test_layer_with_a_rule(middle: nn.Module) -> None:
    check_net(Net(middle))
    for parameter in list(middle.parameters())[1:]:
        parameter.requires_grad_(False)
    check_net(Net(middle))


@pytest.mark.parametrize("length", [2, 3, 40])
def test_gram_and_explicit_form_agree_with_the_loop(length: int) -> None:
    check_net(Net(nn.Sequential(nn.Linear(D, 32), nn.GELU(), nn.Linear(32, D, bias=False))), length)


def test_lora_on_a_frozen_model() -> None:
    model = Net(LoRA())
    model.tokens.requires_grad_(False)
    model.head.requires_grad_(False)
    check_net(model)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("length", [3, 40])
def test_tied_embedding_and_head(bias: bool, length: int) -> None:
    norms = check_net(Net(nn.Sequential(nn.Linear(D, D), nn.Tanh()), tied=True, bias=bias), length)
    assert set(norms.layers()) == {"tokens+head", "middle.0"}


class ScaledEmbedding(nn.Embedding):
    """Gemma's embedding; `power` 1 is Gemma's way."""

    power = 1

    def __init__(self, scale: float, padding_idx: int | None) -> None:
        super().__init__(V, D, padding_idx)
        self.embed_scale = nn.Buffer(torch.tensor(scale), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens) ** self.power * self.embed_scale.to(self.weight.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 8**0.5])
def test_the_factor_of_a_scaled_embedding_is_read_exactly(scale: float, dtype: torch.dtype) -> None:
    layer = ScaledEmbedding(scale, None).to(dtype)
    assert embedding_scale(layer) == float(torch.tensor(scale, dtype=dtype))
    layer.power = 2
    assert embedding_scale(layer) is None
    assert embedding_scale(nn.Embedding(3, 4)) == 1.0


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.filterwarnings("error")
def test_scaled_embeddings(tied: bool, padding: int | None, length: int) -> None:
    model = Net(nn.Linear(D, D), tied)
    model.tokens = ScaledEmbedding(8**0.5, padding)
    if tied:
        model.head.weight = model.tokens.weight
    check_net(model, length)


def test_scaled_positions_without_rows() -> None:
    positions = ScaledEmbedding(8**0.5, None)
    check_net(Positioned(nn.Linear(D, D), positions, lambda layer: layer(torch.arange(T))))


def test_embeddings_that_do_more_than_scale_are_recomputed() -> None:
    model = Net(nn.Linear(D, D))
    model.tokens = ScaledEmbedding(2.0, None)
    model.tokens.power = 2
    with pytest.warns(UserWarning, match="no score-norm rule for ScaledEmbedding"):
        check_net(model)


def test_linear_layers_that_share_only_their_bias() -> None:
    first, second = nn.Linear(D, D), nn.Linear(D, D)
    second.bias = first.bias
    check_net(Net(nn.Sequential(first, nn.Tanh(), second)))


def test_layers_used_several_times() -> None:
    layer, norm = nn.Linear(D, D), nn.LayerNorm(D)
    check_net(Net(nn.Sequential(layer, nn.Tanh(), norm, layer, nn.Tanh(), norm)))


@pytest.mark.parametrize("shape", [(1, T, D), (T, D), (2 * T, D)], ids=str)
@pytest.mark.parametrize("rows", [1, B])
def test_positions_as_a_parameter(shape: tuple[int, ...], rows: int) -> None:
    class Positioned(Net):
        def __init__(self) -> None:
            super().__init__(nn.Linear(D, D))
            self.places, self.scale = nn.Parameter(torch.randn(shape)), nn.Parameter(torch.randn(D))

        def forward(self, tokens: Tensor) -> Tensor:
            places = self.places if self.places.ndim == 3 else self.places[: tokens.shape[1]]
            return self.head(torch.tanh(self.middle(self.tokens(tokens) + places) + self.scale))

    model = Positioned().double()
    check(model, lambda: log_softmax_of(model, some_tokens()[:rows]))


@pytest.mark.parametrize("form", ["flat", "one row", "expanded", "repeated"])
def test_positions_as_an_embedding_without_rows(form: str) -> None:
    def read(layer: nn.Embedding) -> Tensor:
        ids = torch.arange(T) // 2 if form == "repeated" else torch.arange(T)
        places = layer(ids if form in ("flat", "repeated") else ids[None])
        return places.expand(rows, T, D) if form == "expanded" else places

    rows = B
    check_net(Positioned(nn.Linear(D, D), nn.Embedding(T, D), read))
    rows, model = T, Positioned(nn.Linear(D, D), nn.Embedding(T, D), read).double()
    six = torch.randint(V, (T, T))  # as many rows as positions
    check(model, lambda: log_softmax_of(model, six))


def test_layers_without_a_rule_are_recomputed_and_announced_once() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(D))

        def forward(self, x: Tensor, *, power: float = 1.0) -> tuple[Tensor, Tensor]:
            return x * self.scale**power, self.scale * x.square()

    def way(middle: Through, x: Tensor) -> Tensor:
        a, b = middle.first(x, power=2.0)
        x = middle.second(a + b)[0]
        x = x + middle.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        return middle.attention(x, x, x)[0]

    conv, attention = nn.Conv1d(D, D, 3, padding=2), nn.MultiheadAttention(D, 2, batch_first=True)
    model = Net(Through(way, first=Scale(), second=Scale(), conv=conv, attention=attention)).double()
    with pytest.warns(UserWarning, match="no score-norm rule for Conv1d, MultiheadAttention, Scale") as seen:
        check_net(model)  # two batches
    assert len(seen) == 1
    assert seen[0].filename.endswith("score_norms_oracle.py")


def test_checkpointed_layers() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D), nn.Tanh(), nn.Linear(D, D))

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(1):
                x = x + checkpoint(self.inner, x, use_reentrant=False)
            return x

    model = Net(nn.Sequential(Checkpointed(), Checkpointed())).double()
    norms = check_net(model)
    tokens = some_tokens()
    with norms.record():
        logp = log_softmax_of(model, tokens)
    unkept = [use.layer.name for use in norms._tape.uses if use.inputs is None]
    assert len(unkept) == 6  # the inputs are those of the replay
    squared = norms.squared_norms(logp, retain_graph=True)
    torch.testing.assert_close(squared, slow_norms(model, log_softmax_of(model, tokens).sum(1)), rtol=1e-10, atol=0)
    logp.sum().backward()  # the graph is still there, and replays once more
    with norms.record():
        logp = model.head(model.middle[1].inner(model.middle[0].inner(model.tokens(tokens)))).log_softmax(-1)[..., 0]
    with pytest.raises(InexactError, match="is no longer checkpointed"):
        norms.squared_norms(logp)


def test_inputs_that_need_gradients_themselves() -> None:
    model = Net(nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, D))).double()
    soft = (0.1 * torch.randn(B, 2, D, dtype=torch.float64)).requires_grad_()

    def compute() -> Tensor:  # no layer comes first: the soft prompt does
        return model.head(model.middle(2 * soft)).log_softmax(-1)[..., 0]

    check(model, compute)
    check(model, lambda: compute() + log_softmax_of(model, some_tokens(2)))


def test_an_empty_batch_has_no_norms() -> None:
    model = Net(nn.Linear(D, D))
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()[:0]))
    assert norms.squared_norms(logp).shape == (0,)
