"""What to probe, and checks of it: that samples can answer the question, and that memory suffices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from vcpo_bench.bench.policies.catalog import check_distributions
from vcpo_bench.bench.regimes import check_method
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.regimes.plan import plan
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.tasks.catalog import check_turns
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method

LEAST_BATCHES = 8
"""Fewest batches from which a bootstrap interval is computed."""


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """What to probe.

    Attributes:
        cell: The run.
        steps: Checkpoints, as numbers of finished updates.
        methods: Methods to measure; signal-to-noise ratios are relative to the first.
        batches: Batches sampled from the behavior policy at each checkpoint.
        fresh: Batches sampled from the current policy for the true gradient.
    """

    cell: RecordedCell
    steps: Sequence[int]
    methods: Sequence[Method]
    batches: int = 64
    fresh: int = 256


def check_probe(spec: ProbeSpec) -> dict[int, int]:
    """Check a probe.

    Returns:
        The version of the behavior policy at each checkpoint, in order.

    Raises:
        UsageError: A checkpoint is beyond the run, a sample is too small, a method's update is not a function of fresh
            data, the update due at a checkpoint consumes data of several policies, or the sampler truncates.
    """
    if not spec.steps:
        raise UsageError("--at: the list is empty; give at least one update, such as 50,150")
    if not spec.methods:
        raise UsageError("--methods: the list is empty; give at least one method")
    for flag, value in (("--batches", spec.batches), ("--fresh", spec.fresh)):
        if value < LEAST_BATCHES:
            raise UsageError(
                f"{flag} {value}: at least {LEAST_BATCHES} batches are needed to bootstrap a confidence interval"
            )
    for step in spec.steps:
        spec.cell.check(step)
    _check_sampler(spec.cell)
    schedule = spec.cell.schedule
    for method in spec.methods:
        _check_method(method, schedule)
        check_distributions(method.canonical, method.needs, spec.cell.config.model)
        check_turns(method.canonical, method.needs, spec.cell.config.parts.task)
    return {step: _version(spec.cell, schedule, step) for step in sorted(set(spec.steps))}


def _check_sampler(cell: RecordedCell) -> None:
    regime = cell.config.parts.regime
    if regime.truncates or cell.config.parts.sampler.truncates:
        sampler = regime.text() if regime.truncates else cell.config.sampler
        raise UsageError(
            f"{cell.key}: {sampler} draws from a truncated distribution, so its samples of the current "
            "policy do not have the true gradient as their mean; probe a cell sampled without top_p and top_k"
        )


def _check_method(method: Method, schedule: StalenessSchedule) -> None:
    check_method(method.canonical, method.needs, schedule)
    reasons = {
        "acts on the previous gradient, so its update is not a function of one batch": method.combine is not None,
        "uses the step scales of another cell": method.needs_series is not None,
        "asks how far the weights have moved, so its update is not a function of one batch": bool(
            method.measures_drift
        ),
        "needs a proximal policy, which fresh data do not have": "proximal_logp" in method.needs,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"{method.canonical}: {reason}; remove it from --methods")


def _version(cell: RecordedCell, schedule: StalenessSchedule, step: int) -> int:
    """Version of the single policy that sampled what update `step` consumes."""
    regime = cell.config.regime
    if not (schedule.planned and schedule.trains_once):
        raise UsageError(f"{cell.key}: under {regime} no single policy samples a batch; use fifo")
    *_, planned = plan(schedule, step + 1)
    versions = set(planned.oldest) | set(planned.newest)
    if len(versions) > 1:
        raise UsageError(
            f"--at {step}: under {regime} that update consumes data of versions {min(versions)} to {max(versions)}; "
            "the probe needs one behavior policy, as with fifo"
        )
    return versions.pop()


def check_memory(spec: ProbeSpec, trained: int) -> None:
    """Check that main memory holds the gradients: one per fresh batch, and one per stale batch and method.

    Raises:
        UsageError: They need more than the main memory.
    """
    gradients = spec.fresh + spec.batches * len(spec.methods)
    needed, available = 4 * gradients * trained / 2**30, main_memory() / 2**30
    if needed > available:
        raise UsageError(
            f"--fresh {spec.fresh} and --batches {spec.batches} for {len(spec.methods)} methods are {gradients} "
            f"gradients of {trained} trained parameters: {needed:.1f} GiB of main memory, and this machine has "
            f"{available:.1f}; reduce the numbers of batches or methods, or probe a cell trained with --lora"
        )


def main_memory() -> float:
    """Bytes of main memory of this machine; infinite if unknown."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else float("inf")
