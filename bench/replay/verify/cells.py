"""Verifying a recorded cell: what waited in its queues, and the push of every stored version to its sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

import numpy as np

from vcpo_bench.bench.cells.opening import open_policy, open_sampler
from vcpo_bench.bench.feeding.batch_generator import BatchGenerator
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes import Order
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.replay import one_thread
from vcpo_bench.bench.replay.verify.canaries import Canaries
from vcpo_bench.bench.replay.verify.findings import Gaps, TooFewHonestError, VersionVerdict, explained, judge
from vcpo_bench.bench.replay.verify.gaps import gaps_under
from vcpo_bench.bench.replay.verify.stored import Recorded, StoredRun
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.errors import UsageError
from vcpo_bench.progress import track

_HONEST, _CANARY = 4 * 10**9, 5 * 10**9
"""First batch index of honest draws and of canary prompts: random streams that no run reads."""
_HONEST_ROWS = 256
"""Honest trajectories against which those of one version are tested."""
_NEIGHBORS = 8
"""Other versions under which false trajectories are scored."""
_LEAST = 8
"""Fewest recorded trajectories that are worth a test."""


def verify_cell(
    cell: RecordedCell, alpha: float = 1e-3, sample: int = 64, honest: int = 0, canaries: bool = True
) -> Iterator[VersionVerdict]:
    """Findings for every declared version whose weights are stored, then for the push of every stored version.

    Args:
        cell: A cell that kept checkpoints.
        alpha: Probability of any false alarm in the whole cell, at most: it is shared out among the tests.
        sample: Trajectories scored per declared version.
        honest: Number of declared versions, the first ones, that are taken as honest: so the tolerance for
            another engine is learned. 0: honest responses are drawn anew, with the cell's own sampler in this process.
        canaries: Push every stored version to the cell's sampler and check its answers.

    Raises:
        UsageError: It kept no checkpoints, its samples cannot be scored again, its sampler cannot be opened, nothing is
            left to test, or too few trajectories are honest or tested for `alpha`.
        DamagedResultError: A checkpoint is damaged.
    """
    if sample < _LEAST:
        raise UsageError(f"--sample {sample}: a test needs at least {_LEAST} trajectories")
    with one_thread():
        verifier = _Verifier(StoredRun(cell), sample)
        declared = verifier.declared()
        _check_honest(verifier, declared, honest)
        tested = list(declared)[honest:]
        pushes = verifier.run.versions[1:] if canaries else []
        if not tested and not pushes:
            raise UsageError(
                f"{cell.key}: no stored version is declared by {_LEAST} trajectories that waited, and no push is "
                "checked; drop --no-canaries"
            )
        level = alpha / (len(tested) + len(pushes))
        first = list(declared)[:honest]
        known = [verifier.gaps(v, declared[v]) for v in track(first, "scoring honest versions", len(first))]
        try:
            for version in track(tested, "testing versions", len(tested)):
                yield verifier.test(version, declared[version], np.concatenate(known) if known else None, level)
            yield from verifier.pushes(pushes, level) if pushes else ()
        except TooFewHonestError as error:
            raise UsageError(f"{cell.key}: {error}; give a larger --honest, --sample or --alpha") from error


def _check_honest(verifier: _Verifier, declared: Mapping[int, Recorded], honest: int) -> None:
    cell = verifier.run.cell
    if declared and not 0 <= honest < len(declared):
        raise UsageError(f"--honest {honest}: {cell.key} declares {len(declared)} versions; leave some to test")
    if declared and not verifier.exact and not honest:
        raise UsageError(
            f"{cell.key}: was sampled by another engine ({cell.config.sampler}); give --honest N, the number of "
            "versions at its start from which the tolerance is learned"
        )


class _Verifier:
    """Scores what a cell recorded under what it stored."""

    def __init__(self, run: StoredRun, sample: int) -> None:
        self.run, self.sample, self.config = run, sample, run.cell.config
        self.regime = self.config.parts.regime
        self.exact = self.config.parts.sampler.exact
        if (self.regime.truncates and not self.regime.mask_replay) or self.config.parts.sampler.truncates:
            raise UsageError(
                f"{run.cell.key}: its sampler truncated distributions and did not record which tokens survived, so the "
                "log-probabilities cannot be computed again; run it with mask_replay=on in the regime"
            )
        self.truth = self._opened()
        self.engine = PublishedPolicy.under(self.regime, self.truth, self.config.seed)

    def _opened(self) -> Policy:
        cell = self.run.cell
        return open_policy(cell.config, self.run.task, cell.start, cell.device or cell.config.device)

    def declared(self) -> dict[int, Recorded]:
        """Recorded trajectories by declared version; hybrids of several weights can be scored under none."""
        mixed = not (self.regime.splits_responses and self.regime.keeps_cache)
        found = {version: rows.first(self.sample) for version, rows in self.run.declared(mixed).items()}
        return {version: rows for version, rows in found.items() if len(rows.reported) >= _LEAST}

    def gaps(self, version: int, rows: Recorded) -> Gaps:
        """[B] gaps under the weights of a version, as the sampler should have held them."""
        self._load(version)
        return gaps_under(self.engine.policy, rows.given, rows.reported, rows.counted)

    def test(self, version: int, rows: Recorded, honest: Gaps | None, level: float) -> VersionVerdict:
        """Test what declares a version."""
        gaps = self.gaps(version, rows)
        known = self._drawn(version) if honest is None else honest
        finding = judge(f"version {version}", gaps, known, level)
        if not finding.false:
            return finding
        others = {other: self.gaps(other, rows) for other in self.run.near(version, _NEIGHBORS)}
        return explained(finding, version, others)

    def _load(self, version: int) -> None:
        self.truth.load_trained(self.run.state(version))
        self.engine.publish(0)

    def _drawn(self, version: int) -> Gaps:
        """Gaps of trajectories drawn now with the stored weights: honest by construction."""
        generator = BatchGenerator(self.config, self.run.task, self.engine)
        rounds = -(-_HONEST_ROWS // (self.config.prompts * self.config.responses))
        found = []
        for index in range(rounds):
            batch = generator.run([Order(_HONEST + index)], version, [self.config.prompts])[0]
            given = batch.flat().each
            found.append(gaps_under(self.engine.policy, given, batch.behavior_logp.flatten(0, 1), given.mask))
        return np.concatenate(found)

    def pushes(self, versions: list[int], level: float) -> Iterator[VersionVerdict]:
        """Push stored versions to the cell's sampler, in order, and check what it answers after each."""
        config, task, learner = self.config, self.run.task, self._opened()
        pushed = PublishedPolicy.under(self.regime, learner, config.seed, open_sampler(config, task, learner))
        with closing(pushed):
            self._load(self.run.versions[0])
            learner.load_trained(self.run.state(self.run.versions[0]))
            pushed.publish(self.run.versions[0])
            canaries = Canaries(
                self.engine.policy,
                lambda index: task.training_prompts(config.seed, _CANARY + index, 8),
                task.max_response,
                level=level,
            )
            canaries.learn(lambda prompts, noise: pushed.generate(prompts, noise, task), version=self.run.versions[0])
            for version in track(versions, "checking pushes", len(versions)):
                learner.load_trained(self.run.state(version))
                pushed.publish(version)
                self._load(version)
                yield canaries.check(lambda prompts, noise: pushed.generate(prompts, noise, task), version)
