"""Samplers as a user names them, and the catalog that finds them: a sampler is one file here, or a plug-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy
    from vcpo_bench.bench.policies.hf.sampling import SamplingOptions
    from vcpo_bench.bench.samplers.engines.base import InflightEngine


@dataclass(frozen=True, slots=True)
class SamplingJob:
    """What a cell asks of its sampler.

    Attributes:
        prompt_length: Tokens of every prompt, padding included.
        max_response: Longest response in tokens.
        responses: Responses in flight at once.
        adapters: Whether LoRA adapters are trained instead of all weights.
        publish_every: Updates between two publications of the weights.
        keeps_cache: Whether weights change under responses in flight that keep their KV cache.
        regime: Canonical name of the regime, for messages.
        truncated: Whether the regime truncates the distribution of each token: an engine must refuse.
        in_turns: Whether an environment answers the policy between its turns.
    """

    prompt_length: int
    max_response: int
    responses: int
    adapters: bool
    publish_every: int
    keeps_cache: bool
    regime: str
    truncated: bool = False
    in_turns: bool = False


@dataclass(frozen=True, kw_only=True)
class Sampler(Component):
    """How responses are drawn. By default the policy draws them itself, in the process that holds it.

    A subclass is a frozen dataclass whose fields are its parameters.

    Class attributes:
        needs_language_model: Whether the built-in tiny policy cannot be sampled with it.
        for_language_models: Whether its options mean nothing to the built-in tiny policy, which can be sampled with its
            defaults only.
        exact: Whether a cell can be run again bit for bit: its samples are a function of seeds and weights alone.
        keeps: Whether the policy keeps its caches, of `at_once` responses, and a copy of its weights while it learns.
    """

    needs_language_model: ClassVar[bool] = False
    for_language_models: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    @property
    def truncates(self) -> bool:
        """Whether it samples from another distribution than the policy's."""
        return False

    @property
    def at_once(self) -> int:
        """Responses drawn at once; 0: all of a batch."""
        return 0

    @property
    def layer_seconds(self) -> float:
        """Least seconds of one layer in a sampling step on a GPU: `torch` on an H200, where no response ends."""
        return 9e-4

    def workers(self, gpus: int) -> int:
        """How many worker processes to start on a machine with so many GPUs, unless the user says."""
        return gpus

    def check_installed(self) -> None:
        """Refuse to run, before the first cell, where a package or a setting is missing.

        Raises:
            UsageError: It is.
        """

    def sampling(self) -> SamplingOptions:
        """How the policy of a language model draws responses: those of evaluations at least.

        Raises:
            UsageError: A package it needs is missing.
        """
        from vcpo_bench.bench.policies.hf.sampling import SamplingOptions

        return SamplingOptions()

    def open(self, policy: Policy, job: SamplingJob) -> InflightEngine | None:
        """The engine that samples for a cell; None: the policy itself does.

        Raises:
            UsageError: The cell cannot be sampled this way, a package is missing, or there is no server.
        """
        return None


SAMPLERS: Catalog[Sampler] = Catalog("sampler", Sampler, ["vcpo_bench.bench.samplers"])
"""Every sampler, those of plug-ins included."""
