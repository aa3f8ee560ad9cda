"""Plug-ins written for the version before this one still work, and warn with the present names."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import vcpo_bench.methods as methods
from vcpo_bench.methods import METHODS, Batch, EvidenceView, Regularizer, load_plugin, parse_method

Make = Callable[..., Batch]
METHOD = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from vcpo_bench.methods import Evidence, RatioMethod, Terms
from vcpo_bench.methods.params import number
from vcpo_bench.methods.parts.base import Mask, Regulariser


@dataclass(frozen=True, kw_only=True)
class Pull(Regulariser):
    """k = -strength log r."""

    name: ClassVar[str] = "old-pull"
    slot: ClassVar[str] = "regulariser"
    strength: float = number(0.5, minimum=0)

    def addend(self, ev: Evidence) -> torch.Tensor:
        return -self.strength * ev.raw()


@dataclass(frozen=True, kw_only=True)
class Old(RatioMethod):
    """c = A r below a cap, and a pull."""

    name: ClassVar[str] = "old"
    cap: float = number(1.5, minimum=0)

    def own_regularisers(self) -> tuple[Regulariser, ...]:
        return (Pull(), *super().own_regularisers())

    def terms(self, ev: Evidence) -> Terms:
        ratio = ev.ratio("current", self.anchor, self.clamp)
        outside = ratio > self.cap
        return Terms(weight=torch.where(outside, 0.0, ratio), clipped=outside)
'''


@pytest.fixture(autouse=True)
def _fresh_catalog() -> object:
    yield
    METHODS.forget()


def test_an_old_plugin_works_and_every_old_name_warns(tmp_path: Path, make_batch: Make) -> None:
    file = tmp_path / "old.py"
    file.write_text(METHOD)
    with pytest.warns(DeprecationWarning, match="is now") as caught:  # noqa: PT031
        load_plugin(file)
        old = parse_method("old")
        update = old(make_batch())
    said = "\n".join(str(warning.message) for warning in caught)
    assert all(Path(warning.filename).parent == tmp_path for warning in caught)
    for renamed in (
        "Evidence is now vcpo_bench.methods.EvidenceView",
        "vcpo_bench.methods.params.number is now vcpo_bench.naming.parameters.number",
        "vcpo_bench.methods.parts.base.Regulariser is now vcpo_bench.methods.Regularizer",
        "slot 'regulariser' is now 'regularizer'",
        "Old.own_regularisers is now own_regularizers",
        "Terms(clipped=...) is now Terms(kept=...)",
    ):
        assert renamed in said
    parts = "reinforce+token-tis(cap=inf)+band(high=1.5,level=token,low=0)+kl(beta=0.5,kind=k2,clamp=inf)"
    expected = parse_method(parts)(make_batch())
    assert torch.allclose(update.coefficients, expected.coefficients)
    assert torch.allclose(update.metrics["share_clipped"], expected.metrics["share_masked"])
    assert METHODS.kinds["old-pull"].slot == "regularizer"
    assert "old-pull" in [part.name for part in old.regularizers]


def test_the_old_hook_of_a_shipped_method_can_be_called(make_batch: Make) -> None:
    method = parse_method("prime-rl")
    assert method.own_regularisers() == method.own_regularizers() != ()  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="regularisers is now regularizers"):
        assert method.regularisers == method.regularizers


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows", "row_mask"),
        ("live", "mask_float"),
        ("applied", "extra_weight"),
        ("signal", "weighted_advantage"),
        ("spoiled", "nonfinite_tokens"),
    ],
)
def test_old_names_of_the_view_are_read(old: str, new: str, make_batch: Make) -> None:
    method = parse_method("reinforce+token-tis")
    ev = method.evidence(make_batch())
    ev.apply_weight(method._extra_weight(ev))
    with pytest.warns(DeprecationWarning, match=f"EvidenceView.{old} is now {new}") as caught:
        value = getattr(ev, old)
    assert value is getattr(ev, new)
    assert caught[0].filename == __file__


def test_old_classes_are_the_present_ones() -> None:
    for old, kind in (("Evidence", EvidenceView), ("Regulariser", Regularizer)):
        with pytest.warns(DeprecationWarning, match=f"{old} is now vcpo_bench.methods.{kind.__name__}") as caught:
            assert getattr(methods, old) is kind
        assert caught[0].filename == __file__


def test_what_never_was_a_name_is_none() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Regularizerr'"):
        _ = methods.Regularizerr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'Clip' object has no attribute 'regularised'"):
        _ = parse_method("clip").regularised  # type: ignore[attr-defined]
