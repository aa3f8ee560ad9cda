"""Canaries: prompts sent to a sampler after every push, whose answers the pushed weights must explain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.replay.replay import weights_of
from vcpo_bench.bench.replay.verify.findings import Gaps, VersionVerdict, explained, judge
from vcpo_bench.bench.replay.verify.gaps import gaps_under
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.trajectories import Responses, Rollout

Generate = Callable[[Tensor, Tensor], Rollout]
"""Draws a response for each row of uniforms [B, T] to prompts [P, Lp], P dividing B, as `Engine.generate` does."""

_ROUNDS = 16
"""Sets of prompts from which honest gaps are learned."""
_REPEATED = 0
"""Index of the prompts that every push sees again: a stale cache of their prefixes shows in them."""


class Canaries:
    """Checks that a sampler holds the weights it was pushed, from its answers alone.

    After each push the sampler answers prompts it has seen before and prompts it has not. Both are scored under the
    pushed weights. First call `learn` while the sampler is known to hold the policy's weights:
    it fixes what an honest gap is.

    Args:
        policy: Holds the weights that the sampler should have, whenever `learn` and `check` are called.
        prompts: Prompts int64 [P, Lp] by an index; different indices give different prompts.
        length: Tokens of an answer at most.
        answers: Answers per prompt.
        level: False-alarm rate of one call of `check`.
        remember: Versions before the present one that are kept, to name the one that answered instead.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: Callable[[int], Tensor],
        length: int,
        answers: int = 4,
        level: float = 1e-4,
        remember: int = 2,
    ) -> None:
        self.policy, self.prompts, self.length, self.answers = policy, prompts, length, answers
        self.level = level
        self._index = count(_REPEATED + 1)
        self._honest: Gaps = np.empty(0)
        self._past: deque[tuple[int, dict[str, Tensor]]] = deque(maxlen=remember)

    def learn(self, generate: Generate, version: int = 0) -> None:
        """Learn how large honest gaps are, and let the sampler see the repeated prompts.

        Args:
            generate: The sampler, which holds the policy's weights.
            version: Updates that the policy has seen.
        """
        asked = [_REPEATED, *(next(self._index) for _ in range(_ROUNDS - 1))]
        found = [self._gaps(*self._ask(generate, index, index)) for index in asked]
        self._honest = np.concatenate([self._honest, *found])
        self._remember(version)

    def check(self, generate: Generate, version: int) -> VersionVerdict:
        """Check a push that has just been made.

        Args:
            generate: The sampler.
            version: Updates seen by the policy, whose weights were pushed.

        Raises:
            TooFewHonestError: `learn` saw too few answers for the level.
        """
        fresh = next(self._index)
        asked = [self._ask(generate, index, fresh) for index in (_REPEATED, fresh)]
        gaps = [self._gaps(*each) for each in asked]
        finding = judge(f"canaries after push {version}", np.concatenate(gaps), self._honest, self.level)
        if finding.false:
            finding = self._explain(finding, version, asked, len(gaps[0]))
        self._remember(version)
        return finding

    def _explain(
        self, finding: VersionVerdict, version: int, asked: list[tuple[Tensor, Rollout]], repeated: int
    ) -> VersionVerdict:
        others: dict[int, Gaps] = {}
        for past, state in self._past:
            with weights_of(self.policy, state):
                others[past] = np.concatenate([self._gaps(*each) for each in asked])
        found = explained(finding, version, others)
        if not any(row >= repeated for row in finding.rows):
            return replace(found, cause="only prompts it had seen before the push are wrong: a stale prefix cache")
        return found

    def _remember(self, version: int) -> None:
        state: Mapping[str, Tensor] = self.policy.trained_state()
        self._past.append((version, {name: tensor.to("cpu", copy=True) for name, tensor in state.items()}))

    def _ask(self, generate: Generate, index: int, noise: int) -> tuple[Tensor, Rollout]:
        """Prompts [B, Lp] of an index, and the answers to them."""
        prompts = self.prompts(index)
        rows = len(prompts) * self.answers
        draws = torch.from_numpy(uniforms(0, f"canaries {index}", noise, rows, self.length))
        return prompts.repeat_interleave(self.answers, 0), generate(prompts, draws)

    def _gaps(self, prompts: Tensor, answer: Rollout) -> Gaps:
        given = Responses(prompts, answer.responses, answer.mask, answer.kept)
        return gaps_under(self.policy, given, answer.logp, counted=answer.mask)
