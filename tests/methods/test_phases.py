"""What is not known yet cannot be read: an error names the value, the phase and the part."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from vcpo_bench.methods import (
    Admission,
    Aggregation,
    Baseline,
    Batch,
    EvidenceOrderError,
    EvidenceView,
    Mask,
    Regularizer,
    Step,
    Terms,
    WeightMethod,
    parse_method,
)
from vcpo_bench.methods.parts.seq_mean_token_mean import SeqMeanTokenMean
from vcpo_bench.methods.reinforce import Reinforce

Make = Callable[..., Batch]
VALUES = ("advantage", "extra_weight", "weighted_advantage")
seen: list[Any] = []


def look(part: Any, ev: EvidenceView) -> None:
    """Read what the part is asked to read."""
    seen.append(getattr(ev, part.value))


@dataclass(frozen=True, kw_only=True)
class Curious:
    """Something that reads one value of the view."""

    name: ClassVar[str] = "curious"
    value: str = "advantage"


@dataclass(frozen=True, kw_only=True)
class CuriousAdmission(Curious, Admission):
    def admit(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return ev.rows.valid


@dataclass(frozen=True, kw_only=True)
class CuriousBaseline(Curious, Baseline):
    def advantage(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return ev.reward


@dataclass(frozen=True, kw_only=True)
class CuriousPenalty(Curious, Regularizer):
    def penalty(self, ev: EvidenceView) -> Tensor | None:
        look(self, ev)
        return None


@dataclass(frozen=True, kw_only=True)
class CuriousStep(Curious, Step):
    def scale(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return torch.ones(())


@dataclass(frozen=True, kw_only=True)
class CuriousWeight(Curious, WeightMethod):
    def weight(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return ev.ratio()


@dataclass(frozen=True, kw_only=True)
class CuriousMask(Curious, Mask):
    def keep(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return ev.rows.mask


@dataclass(frozen=True, kw_only=True)
class CuriousAggregation(Curious, Aggregation):
    def factor(self, ev: EvidenceView) -> Tensor:
        look(self, ev)
        return SeqMeanTokenMean().factor(ev)


@dataclass(frozen=True, kw_only=True)
class CuriousAddend(Curious, Regularizer):
    def addend(self, ev: EvidenceView) -> Tensor | None:
        look(self, ev)
        return None


@dataclass(frozen=True, kw_only=True)
class CuriousBonus(Curious, Regularizer):
    def entropy(self, ev: EvidenceView) -> Tensor | None:
        look(self, ev)
        return None


@dataclass(frozen=True, kw_only=True)
class CuriousMethod(Curious, Reinforce):
    def terms(self, ev: EvidenceView) -> Terms:
        look(self, ev)
        return Terms()


KNOWN = {
    CuriousAdmission: ("admission", 0),
    CuriousBaseline: ("baseline", 0),
    CuriousPenalty: ("penalty", 1),
    CuriousStep: ("step", 1),
    CuriousWeight: ("weight", 1),
    CuriousMask: ("mask", 3),
    CuriousAggregation: ("aggregation", 3),
    CuriousAddend: ("surrogate", 3),
    CuriousBonus: ("surrogate", 3),
    CuriousMethod: ("surrogate", 3),
}
"""The phase of each, and how many of `VALUES` are known in it."""


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_known_from_its_phase_on(kind: type[Any], value: str, make_batch: Make) -> None:
    part = kind(value=value)
    method = part if isinstance(part, CuriousMethod) else Reinforce(extras=(part,))
    phase, known = KNOWN[kind]
    seen.clear()
    if VALUES.index(value) < known:
        method(make_batch())
        assert len(seen) == 1
        assert value == "extra_weight" or isinstance(seen[0], Tensor)
        return
    with pytest.raises(EvidenceOrderError) as caught:
        method(make_batch())
    assert (caught.value.value, caught.value.phase, caught.value.actor) == (value, phase, "curious")
    first = "penalty" if value == "advantage" else "mask"
    assert str(caught.value) == f"curious reads {value} in the {phase} phase; it is known from the {first} phase on"


def test_outside_an_update_nothing_is_known(make_batch: Make) -> None:
    with pytest.raises(EvidenceOrderError, match="advantage is read outside an update; it is known from the penalty"):
        _ = EvidenceView(make_batch()).advantage


@dataclass(frozen=True, kw_only=True)
class Toll(Regularizer):
    """Takes half of the advantage it sees."""

    name: ClassVar[str] = "toll"
    share: float = 0.5

    def penalty(self, ev: EvidenceView) -> Tensor | None:
        return ev.advantage.expand(ev.rows.mask.shape) * self.share


def test_every_penalty_sees_the_advantage_of_the_baseline(make_batch: Make) -> None:
    batch = make_batch()
    plain = Reinforce()(batch).coefficients
    both = Reinforce(extras=(Toll(), Toll(share=0.25)))(batch).coefficients
    assert torch.allclose(both, plain * 0.25)  # 1 - 1/2 - 1/4, whatever their order


def test_the_weights_added_are_multiplied_and_known_apart(make_batch: Make) -> None:
    batch = replace(make_batch(), proximal_logp=make_batch(seed=1).logp)
    method = parse_method("reinforce+token-tis(cap=inf)+tis(cap=inf)")
    ev = method.evidence(batch)
    ev.apply_weight(method._extra_weight(ev))
    assert ev.extra_weight is not None
    expected = ev.ratio() * ev.pair().row_log.clamp(-20, 20).exp().unsqueeze(-1)
    assert torch.allclose(ev.extra_weight, expected)
    assert torch.equal(ev.weighted_advantage, ev.advantage * ev.extra_weight)
    ev.apply_weight(None)
    assert ev.extra_weight is None
    assert ev.weighted_advantage is ev.advantage
