"""Answers that no longer depend on the prompt."""

from typing import ClassVar

from vcpo_bench.analysis.monitoring.signal import Array, Role, Signal, Updates, column


class PromptIgnored(Signal):
    """Answers that no longer depend on the prompt ("template collapse", arXiv 2604.06268).

    Reward and entropy may look healthy meanwhile.
    """

    name: ClassVar[str] = "prompt_ignored"
    summary: ClassVar[str] = "minus the mutual information of prompt and response token"
    role: ClassVar[Role] = "policy"
    stacks: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("prompt_information",)

    def formula(self, steps: Updates) -> Array:
        """`[S]` the column with its sign turned, nats per token."""
        return -column(steps, "prompt_information")
