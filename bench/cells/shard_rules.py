"""Which cells can be spread over several processes, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes.regime import ROUNDINGS
from vcpo_bench.bench.samplers.policy_sampler import PolicySampler
from vcpo_bench.errors import UsageError


def check_shards(config: CellConfig) -> None:
    """Refuse a cell that asks for several shards and cannot have them.

    Raises:
        UsageError: It cannot, for the reason named.
    """
    if config.shards > 1 and (reason := next(_reasons(config), "")):
        raise UsageError(f"--shards {config.shards}: {reason}")


def _reasons(config: CellConfig) -> Iterator[str]:
    """What stands against it, each with what to do."""
    rows = config.prompts * config.responses
    if rows % config.shards:
        update = f"an update of {config.prompts} x {config.responses} trajectories"
        yield f"{update} cannot be divided by {config.shards}; use a number that divides {rows}"
    if not isinstance(config.parts.sampler, PolicySampler):
        yield f"--sampler {config.sampler} samples elsewhere, and cannot read sharded weights; use torch"
    if not config.parts.optimizer.elementwise:
        yield f"--optimizer {config.optimizer} needs whole matrices; use adamw or sgd"
    if config.parts.task.in_turns:
        yield f"{config.task} takes several turns, which only one process draws"
    regime = config.parts.regime
    if regime.asynchronous or regime.splits_responses:
        yield f"--regime {config.regime} stops or starts responses while the policy learns; use fifo"
    if regime.publish_every > 1 or regime.engine_noise in ROUNDINGS:
        yield "the sampler would hold other weights than the learner; drop publish_every and engine_noise"
    if regime.truncates:
        yield f"--regime {config.regime} cuts distributions, which no sharded policy was tried with; drop top_p, top_k"
    method = config.parts.method
    if method.measures_drift:
        yield f"{config.method} keeps whole weights of past versions; use --shards 1"
    if method.needs_series:
        yield f"{config.method} borrows the step scales of another cell, which one process reads; use --shards 1"
