"""Truncated importance sampling token by token."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.tis import Tis
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class TokenTis(Tis):
    """c = A min(r, cap): each token's ratio truncated on its own (Yao et al. 2025)."""

    name: ClassVar[str] = "token-tis"
    summary: ClassVar[str] = "detached token ratio, capped at 2"
    reference: ClassVar[str] = "Yao et al., 'Your Efficient RL Framework Secretly Brings You Off-Policy RL Training'"
    known_as: ClassVar[tuple[str, ...]] = ("off-policy-tis", "use-tis", "truncated-is", "token-truncate")
    formula: ClassVar[str] = "c = A min(r, cap)"
    differences: ClassVar[tuple[str, ...]] = (
        "cap: 2 verl, slime, open-instruct and SkyRL; 3 TRL; unset NeMo-RL",
        "log-ratio clamp: +-20 verl, +-10 open-instruct, none elsewhere",
    )
    level: str = choice("token", "sequence", "geometric", "segment")
    cap: float = number(2.0, minimum=0)
