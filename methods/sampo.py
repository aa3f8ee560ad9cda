"""SAMPO: sequence clip with wide bounds, and prompts without signal left out."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.assembly.parts import Parts
from vcpo_bench.methods.gspo import Gspo
from vcpo_bench.methods.parts.zero_variance import ZeroVariance
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Sampo(Gspo):
    """GSPO's clip at 1 - 3e-3 and 1 + 4e-3, without the groups whose rewards are all equal (SAMPO 2602.21534).

    The paper adds an advantage per environment step (GiGPO): rows that meet in the same state are compared. With one
    turn they all meet at the prompt, where it equals the advantage of the episode; with several turns it needs the
    states, which a batch does not carry, and is left out.
    """

    name: ClassVar[str] = "sampo"
    summary: ClassVar[str] = "sequence ratio clipped at 3e-3 / 4e-3, groups of equal rewards left out"
    reference: ClassVar[str] = "SAMPO 2602.21534"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "c = A s, 0 where A>0 and s>1+high or A<0 and s<1-low; groups with std_G R = 0 left out"
    differences: ClassVar[tuple[str, ...]] = (
        "authors' scripts add a k3 penalty of 0.01 to a reference policy: +kl(beta=0.01,anchor=reference)",
        "authors' scripts filter groups from the sixth update on; here from the first",
    )
    low: float = number(3e-3, minimum=0)
    high: float = number(4e-3, minimum=0)

    @property
    def defaults(self) -> Parts:
        """The filter of groups without signal."""
        return Parts(admissions=(ZeroVariance(),))
