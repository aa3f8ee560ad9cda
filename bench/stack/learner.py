"""The learners of E cells: score, ask the methods, backpropagate and step, each once for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import perf_counter

import torch
from torch import Tensor

from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.stack.adamw import OwnOptimizers, StackedAdamW
from vcpo_bench.bench.stack.answers import Answer, answer
from vcpo_bench.bench.stack.batched_norms import BatchedNormPasses
from vcpo_bench.bench.stack.evidence import StackedEvidence, gather_evidence, together
from vcpo_bench.bench.stack.gradients import StackedGradients
from vcpo_bench.bench.stack.network import StackedNetwork
from vcpo_bench.bench.stack.passes import NormPasses, PlainPasses
from vcpo_bench.bench.stack.scoring import score
from vcpo_bench.bench.stack.weights import StackedWeights
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_step import GRAD_CLIP, NO_STEP, LearnerStep, StepMade
from vcpo_bench.bench.trajectories import Responses, Trajectories
from vcpo_bench.methods import NonFiniteEvidence, Update

Outcome = LearnerStep | Exception
"""What an update of a cell did, or what ends the cell."""


class StackedLearner:
    """Applies the method of each of E learners to its policy, as `Learner.update` does for one.

    Args:
        learners: The learners, whose policies are those of the stack; they keep all state.
        weights: The stacked weights of their policies.
    """

    def __init__(self, learners: Sequence[Learner], weights: StackedWeights) -> None:
        self.learners, self.weights = learners, weights
        self.needs: frozenset[str] = frozenset().union(*(learner.method.needs for learner in learners))
        policies = [learner.policy for learner in learners if isinstance(learner.policy, TinyPolicy)]
        with_norms = "score_norm_sq" in self.needs
        own = weights.device.type == "cpu"
        norm_passes = NormPasses if own else BatchedNormPasses
        self.passes: PlainPasses | NormPasses | BatchedNormPasses = (
            norm_passes(policies, weights) if with_norms else PlainPasses(weights)
        )
        self._gradients = None if own else StackedGradients(weights, learners)
        optimizers = [learner.optimizer for learner in learners]
        self.optimizers = (OwnOptimizers if own else StackedAdamW)(weights, optimizers)
        self._reference = self._references()

    def _references(self) -> StackedNetwork | None:
        """The reference policies; a cell without one is represented by its start policy, which nothing reads."""
        if "reference_logp" not in self.needs:
            return None
        policies = [learner.reference or learner.policy.replica() for learner in self.learners]
        frozen = StackedWeights([policy for policy in policies if isinstance(policy, TinyPolicy)])
        return StackedNetwork(frozen.config, frozen.tensors)

    def update(self, batches: Sequence[Trajectories], nows: Sequence[int]) -> list[Outcome]:
        """One optimizer step of every cell on its batch; none where something was not finite."""
        began = perf_counter()
        self.weights.clear_gradients()
        flat = zip(*(batch.flat()[:3] for batch in batches), strict=True)
        given = Responses(*(together(tensors, self.weights.device) for tensors in flat))
        scores, norms = self.passes.score(given)
        evidence = gather_evidence(batches, nows, scores, self.needs, self._reference_logp(given), norms)
        middle = perf_counter()
        answers = answer(
            [learner.method for learner in self.learners],
            evidence,
            [learner.method_state for learner in self.learners],
        )
        self.passes.backward(answers)
        made = self._step(answers, nows)
        ended = perf_counter()
        cells = len(self.learners)
        seconds = ((middle - began) / cells, (ended - middle) / cells)
        return self._outcomes(evidence, answers, made, seconds)

    def _reference_logp(self, given: Responses) -> Tensor | None:
        if self._reference is None:
            return None
        with torch.no_grad():
            return score(self._reference, given).logp

    def _step(self, answers: Sequence[Answer], nows: Sequence[int]) -> list[StepMade]:
        """Measure, clip and step; see `Learner.update`."""
        scales = [float(each.step_scale) if isinstance(each, Update) else math.nan for each in answers]
        together = self._gradients
        measured, moves = together.observe(answers) if together else observe(self.weights, self.learners, answers)
        made = [StepMade.of(*each) for each in zip(scales, clip(self.weights), measured, strict=True)]
        every = zip(self.learners, nows, scales, strict=True)
        rates = [learner.rate(now) * scale for learner, now, scale in every]
        self.optimizers.step(rates, [move and each.moved for move, each in zip(moves, made, strict=True)])
        return made

    def _outcomes(
        self,
        evidence: StackedEvidence,
        answers: Sequence[Answer],
        made: Sequence[StepMade],
        seconds: tuple[float, float],
    ) -> list[Outcome]:
        """What the update of every cell did; its method keeps its new state."""
        logp, entropy = evidence.logp.cpu(), evidence.entropy.cpu()
        norms = None if evidence.score_norm_sq is None else evidence.score_norm_sq.cpu()
        found: list[Outcome] = []
        for cell, (given, step) in enumerate(zip(answers, made, strict=True)):
            if not isinstance(given, Update | NonFiniteEvidence):
                found.append(given)
                continue
            if isinstance(given, Update):
                self.learners[cell].method_state = dict(given.state)
            found.append(
                LearnerStep(
                    logp=logp[cell],
                    entropy=entropy[cell],
                    score_norm_sq=None if norms is None else norms[cell],
                    answer=given,
                    made=step if isinstance(given, Update) else NO_STEP,
                    seconds_score=seconds[0],
                    seconds_update=seconds[1],
                )
            )
        return found


def observe(
    weights: StackedWeights, learners: Sequence[Learner], answers: Sequence[Answer]
) -> tuple[list[Mapping[str, float]], list[bool]]:
    """Let diagnostics and methods that replace the gradient see it, cell by cell, where there are any.

    Returns:
        What was measured of each cell, and whether it still has a gradient.
    """
    measured: list[Mapping[str, float]] = [{} for _ in learners]
    moves = [True] * len(learners)
    for cell, (learner, given) in enumerate(zip(learners, answers, strict=True)):
        if isinstance(given, Update) and (learner.settings.diagnostics or learner.method.combine):
            weights.share_gradient(cell)
            measured[cell] = learner.observe_gradient()
            moves[cell] = weights.take_gradient(cell)
    return measured, moves


@torch.no_grad()
def clip(weights: StackedWeights) -> list[float]:
    """Clip the gradient of every cell to `GRAD_CLIP`, as `clip_grad_norm_` does; the norms before."""
    gradients = weights.gradients()
    parts = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
    norms = torch.linalg.vector_norm(torch.stack(parts, 1), dim=1)
    factors = (GRAD_CLIP / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))
    found: list[float] = norms.tolist()
    return found
