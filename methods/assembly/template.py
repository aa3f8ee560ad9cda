"""The texts of a method of one's own and its test, for `naming.template.write_new`."""

MODULE = '''"""{title}: say here what it stabilizes."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class {cls}(RatioMethod):
    """c = A min(r, cap), r the token ratio current/behavior."""

    name: ClassVar[str] = "{name}"
    summary: ClassVar[str] = "token ratio capped at 1.5"
    reference: ClassVar[str] = "unpublished"  # or the paper, such as "VCPO 2602.17616", and its year
    formula: ClassVar[str] = "c = A min(r, cap)"
    cap: float = number(1.5, minimum=0)

    def terms(self, ev: EvidenceView) -> Terms:
        """The weight of every token, [..., P, G, T]."""
        return Terms(weight=ev.ratio("current", self.anchor, self.clamp).clamp(max=self.cap))
'''

TEST = '''"""{title} does what its formula says."""

from pathlib import Path

import torch

from vcpo_bench.methods import Batch, load_plugin, parse_method

FILE = Path(__file__).with_name("{module}.py")
if FILE.exists():  # beside its test it is a plug-in; in `methods/` it is found without
    load_plugin(FILE)


def test_the_weight_is_capped() -> None:
    logp = torch.tensor([[[0.0, 1.0]]])
    batch = Batch(
        logp=logp,
        behavior_logp=torch.zeros_like(logp),
        mask=torch.ones(1, 1, 2, dtype=torch.bool),
        valid=torch.ones(1, 1, dtype=torch.bool),
        reward=torch.ones(1, 1),
        advantage=torch.ones_like(logp),
        version=torch.zeros(1, 1, 2, dtype=torch.int64),
        now=0,
    )
    update = parse_method("{name}")(batch)
    assert torch.allclose(update.coefficients, torch.tensor([[[0.5, 0.75]]]))  # 1/2 each, times 1 and min(e, 1.5)
'''
