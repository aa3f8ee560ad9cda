"""What the samplers share in which a language model draws its own responses: truncation, allowed only on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.samplers.catalog import Sampler, SamplingJob
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import choice, integer, number

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy
    from vcpo_bench.bench.samplers.engines.base import InflightEngine


@dataclass(frozen=True, kw_only=True)
class PolicySampler(Sampler):
    """A sampler that may truncate the distribution of each token.

    Attributes:
        top_p: Probability mass kept; 1: all.
        top_k: Tokens kept; 0: all.
        truncate: `refuse` or `allow` top_p and top_k.
    """

    bare_value = False
    for_language_models = True
    top_p: float = number(1.0, above=0.0, maximum=1.0, write=lambda value: f"{value:g}")
    top_k: int = integer(0, minimum=0)
    truncate: str = choice("refuse", "allow")

    def __post_init__(self) -> None:
        """Refuse truncation that was not asked for explicitly.

        Raises:
            UsageError: It was not.
        """
        super().__post_init__()
        if self.truncates and self.truncate != "allow":
            raise UsageError(
                f"--sampler {self.text()}: top_p/top_k change the sampling distribution, so importance ratios differ "
                "from 1 even at lag 0; remove them, or add truncate=allow if that mismatch is what you want to study"
            )

    @property
    def truncates(self) -> bool:
        """Whether top_p or top_k leaves out tokens."""
        return self.top_p < 1 or self.top_k > 0

    def truncation(self) -> Truncation:
        """How it cuts distributions, those of evaluations too."""
        return Truncation(self.top_p, self.top_k)

    def open(self, policy: Policy, job: SamplingJob) -> InflightEngine | None:
        """See `Sampler.open`.

        Raises:
            UsageError: Sampler and regime both truncate.
        """
        if job.truncated and self.truncates:
            raise UsageError(
                f"--sampler {self.text()} --regime {job.regime}: both truncate the distribution; name top_p and top_k "
                "in one of them"
            )
        return None
