"""A part or method that leaves out what its slot asks for is refused when it is loaded; the rest has defaults."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from vcpo_bench.methods import METHODS, EvidenceView, PluginError, Step, load_plugin

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
from {module} import {base}

@dataclass(frozen=True, kw_only=True)
class Unfinished({base}):
    name: ClassVar[str] = "unfinished"
"""
INTERFACES = "vcpo_bench.methods.core.interfaces"


@dataclass(frozen=True, kw_only=True)
class Half(Step):
    name: ClassVar[str] = "half-of-it"

    def scale(self, ev: EvidenceView) -> Tensor:
        return torch.full(ev.batch.leading, 0.5)


@dataclass(frozen=True, kw_only=True)
class Turned(Half):
    name: ClassVar[str] = "turned"

    def combine(self, dots: tuple[float, float, float]) -> tuple[float, float]:
        return -1.0, 0.0

    def compensate(self, gradient: Tensor, drift: Tensor) -> Tensor:
        return gradient - drift


@pytest.fixture
def methods_as_before() -> Iterator[None]:
    yield
    METHODS.forget()


@pytest.mark.usefixtures("methods_as_before")
@pytest.mark.parametrize(
    ("module", "base", "function"),
    [
        (INTERFACES, "Admission", "admit"),
        (INTERFACES, "Baseline", "advantage"),
        (INTERFACES, "Mask", "keep"),
        (INTERFACES, "Aggregation", "factor"),
        (INTERFACES, "Step", "scale"),
        ("vcpo_bench.methods.core.borrowed_step", "BorrowedStep", "arrange"),
        ("vcpo_bench.methods", "WeightMethod", "weight"),
        ("vcpo_bench.methods", "Method", "terms"),
    ],
)
def test_an_unfilled_slot_is_refused_when_it_is_loaded(tmp_path: Path, module: str, base: str, function: str) -> None:
    file = tmp_path / "unfinished.py"
    file.write_text(PLUGIN.format(module=module, base=base))
    with pytest.raises(PluginError, match=rf"'unfinished' does not define {function}$"):
        load_plugin(file)
    assert "unfinished" not in METHODS.names()


def test_a_step_rule_leaves_the_gradient_alone_unless_it_says_what_to_do_with_it() -> None:
    gradient, drift = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.5])
    plain, turned = Half(), Turned()
    assert not plain.acts_on_gradient
    assert not plain.compensates_delay
    assert plain.combine((4.0, 2.0, 1.0)) == (1.0, 0.0)
    assert torch.equal(plain.compensate(gradient, drift), gradient)
    assert plain.with_series([0.1], rng_seed=0) is plain
    assert turned.acts_on_gradient
    assert turned.compensates_delay


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("cap: float = 5.0", "cap, which is no parameter; write cap: float = number(5.0)"),
        ("steps: int = 3", "steps, which is no parameter; write steps: int = integer(3)"),
        ("on: bool = True", "on, which is no parameter; write on: bool = flag(True)"),
        ("side: str = 'left'", "side, which is no parameter; write side: str = choice('left')"),
        ("series: tuple[float, ...] = ()", ""),
        ("name: str = 'other'", ""),
    ],
)
def test_a_field_that_no_expression_could_set_is_refused(tmp_path: Path, field: str, said: str) -> None:
    file = tmp_path / "plain.py"
    body = f"{PLUGIN.format(module=INTERFACES, base='Step')}    {field}\n\n    def scale(self, ev):\n        return 1\n"
    file.write_text(body)
    if not said:
        assert load_plugin(file)
        return
    with pytest.raises(PluginError, match=re.escape(f"'unfinished' has the field {said}")):
        load_plugin(file)
