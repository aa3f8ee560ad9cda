"""A plug-in that knows nothing of leading axes is asked about one run at a time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vcpo_bench.methods import METHODS, Batch, geometry_of, load_plugin, parse_method

FILE = Path(__file__).parents[1] / "helpers" / "mixing_plugin.py"
MIXING = ["self-norm", "clip+drift-step", "clip+overall-mean", "self-norm+drift-step+entropy(beta=0.02)"]


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    load_plugin(FILE)
    yield
    METHODS.forget()


@pytest.mark.parametrize("expression", MIXING)
def test_two_runs_do_not_mix(expression: str, make_batch: Callable[..., Batch]) -> None:
    """Not along two leading axes either."""
    method, lone = parse_method(expression), [make_batch((3, 4, 6), seed=seed) for seed in range(4)]
    fields = [name for name, value in vars(lone[0]).items() if isinstance(value, torch.Tensor)]
    pairs = {name: torch.stack([getattr(one, name) for one in lone]) for name in fields}
    batch = replace(lone[0], **{name: value.view(2, 2, *value.shape[1:]) for name, value in pairs.items()})
    together = method(replace(batch, now=torch.full((2, 2), 5), state={"none": torch.zeros(2, 2)}))
    for index, one in enumerate(lone):
        place, alone = (index // 2, index % 2), method(one)
        assert torch.equal(together.coefficients[place], alone.coefficients)
        assert torch.equal(together.step_scale[place], alone.step_scale)
        for named, own in ((together.metrics, alone.metrics), (together.state, alone.state)):
            assert named.keys() == own.keys()
            assert all(torch.equal(named[name][place].nan_to_num(9), own[name].nan_to_num(9)) for name in own)
        if alone.entropy_coefficients is not None:
            assert together.entropy_coefficients is not None
            assert torch.equal(together.entropy_coefficients[place], alone.entropy_coefficients)


def test_where_it_acts_is_measured_one_run_at_a_time() -> None:
    geometry_of.cache_clear()
    assert str(geometry_of("self-norm")) == "weight on sampler-current, by batch"
    assert "by batch" in str(geometry_of("reinforce+drift-step"))


@pytest.mark.parametrize("expression", ["clip", "vcpo", "vespo+ess", "reinforce+lr-matched"])
def test_what_ships_is_asked_once(expression: str) -> None:
    assert parse_method(expression).all_ship
    assert not parse_method("clip+drift-step").all_ship
