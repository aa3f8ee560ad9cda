"""Random models of easy and hard layers, with as many trajectories as positions and not: never a wrong norm.

`HARDENING=long` tries many more.
"""

import os
import random
import warnings

import pytest
import torch
from score_norms_layers import Attention, Experts, Scaled, Selecting, WithTable
from score_norms_net import D, Net, V, log_softmax_of
from score_norms_oracle import check
from torch import nn

MODELS = 1000 if os.environ.get("HARDENING") == "long" else 40
LAYERS = {
    "linear": lambda: nn.Linear(D, D),
    "wide": lambda: nn.Sequential(nn.Linear(D, 40), nn.GELU(), nn.Linear(40, D, bias=False)),
    "norm": lambda: nn.LayerNorm(D),
    "root mean square": lambda: nn.RMSNorm(D),
    "slope": nn.PReLU,
    "table": WithTable,
    "hidden table": lambda: WithTable(0.0),
    "attention": Attention,
    "experts": Experts,
    "selecting": Selecting,
    "scaled": Scaled,
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_random_models_are_exact_in_every_way() -> None:
    ways = set()
    for seed in range(MODELS):
        draw = random.Random(seed)
        torch.manual_seed(seed)
        names = draw.choices(list(LAYERS), k=draw.randint(1, 3))
        rows, length = draw.randint(1, 6), draw.randint(1, 6)
        length = rows if draw.random() < 0.4 else length
        model = Net(nn.Sequential(*(LAYERS[name]() for name in names)), tied=draw.random() < 0.5).double()
        tokens = torch.randint(V, (rows, length))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                check(model, lambda: log_softmax_of(model, tokens), rtol=1e-8)  # noqa: B023 - called at once
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {names}, {rows} trajectories of {length} tokens") from error
        said = " ".join(str(warning.message) for warning in seen)
        ways.add("one by one" if "backward pass per" in said else "vmap" if "vmap" in said else "hooks")
    assert ways == {"hooks", "vmap", "one by one"}
