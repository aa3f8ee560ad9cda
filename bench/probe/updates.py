"""The updates of several methods at the same weights: one forward pass for all, one backward pass for each."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcpo_bench.bench.model import Model, Scores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update


class Updates(NamedTuple):
    """What one method makes of n batches.

    Attributes:
        gradients: ``[n, D]`` float32, of the loss, before clipping.
        scales: ``[n]`` its multipliers of the learning rate.
    """

    gradients: Tensor
    scales: NDArray[np.float64]


class Estimators:
    """Methods that see the same evidence at fixed weights.

    Args:
        policy: theta_t; copied.
        methods: What maps evidence to coefficients; none may act on the gradient itself.
        reference: Weights of the frozen reference policy, for methods that need one.
        states: What a method kept from the run so far, by its canonical expression.
    """

    def __init__(
        self,
        policy: Model,
        methods: Sequence[Method],
        reference: Mapping[str, Tensor] | None = None,
        states: Mapping[str, Mapping[str, Tensor]] | None = None,
    ) -> None:
        self.policy, self.methods, self.states = copy.deepcopy(policy), methods, states or {}
        self.needs: frozenset[str] = frozenset().union(*(method.needs for method in methods))
        self.parameters = self.policy.trainable()
        self._norms = ScoreNorms(self.policy) if "score_norm_sq" in self.needs else None
        self._reference: Model | None = None
        if "reference_logp" in self.needs and reference is not None:
            self._reference = copy.deepcopy(policy).requires_grad_(False)
            self._reference.load_state_dict(dict(reference))

    def updates(self, batches: Sequence[Trajectories], now: int) -> list[Updates]:
        """The update of each batch on its own, for every method; 0 where training would skip it.

        Args:
            batches: n batches.
            now: t.
        """
        size = sum(parameter.numel() for parameter in self.parameters)
        found = [Updates(torch.zeros(len(batches), size), np.zeros(len(batches))) for _ in self.methods]
        for i, batch in enumerate(batches):
            evidence, scores = self._evidence(batch, now)
            for method, (gradients, scales) in zip(self.methods, found, strict=True):
                try:
                    update = method(evidence.with_state(self.states.get(method.canonical, {})))
                except NonFiniteEvidence:
                    continue
                gradient, scale = self._gradient(scores, update), float(update.step_scale)
                if bool(torch.isfinite(gradient).all()) and np.isfinite(scale):
                    gradients[i], scales[i] = gradient, scale
        return found

    def _evidence(self, batch: Trajectories, now: int) -> tuple[Batch, Scores]:
        shape, norms = batch.mask.shape, self._score_norms(batch) if self._norms else None
        scores = self.policy.score(batch.prompts, batch.responses.flatten(0, 1), batch.mask.flatten(0, 1))
        evidence = Batch(
            logp=scores.logp.detach().view(shape),
            behavior_logp=batch.behavior_logp,
            mask=batch.mask,
            valid=torch.ones(shape[:2], dtype=torch.bool),
            reward=batch.reward,
            version=batch.version,
            now=now,
            reference_logp=self._reference_logp(batch) if self._reference else None,
            entropy=scores.entropy.view(shape) if "entropy" in self.needs else None,
            sum_pi_sq=scores.sum_pi_sq.view(shape) if "sum_pi_sq" in self.needs else None,
            score_norm_sq=norms,
        )
        return evidence, scores

    def _score_norms(self, batch: Trajectories) -> Tensor:
        """``[P, G]``, from a pass of its own with one trajectory per row."""
        assert self._norms is not None
        with self._norms.record():
            scores = self.policy.score_rows(
                batch.flat_prompts(), batch.responses.flatten(0, 1), batch.mask.flatten(0, 1)
            )
        squared = self._norms.squared_norms(scores.logp, scores.mask)
        self._norms.release()
        return squared.view(batch.reward.shape)

    def _reference_logp(self, batch: Trajectories) -> Tensor:
        assert self._reference is not None
        with torch.no_grad():
            found = self._reference.score(batch.prompts, batch.responses.flatten(0, 1), batch.mask.flatten(0, 1))
        return found.logp.view(batch.mask.shape)

    def _gradient(self, scores: Scores, update: Update) -> Tensor:
        """``[D]`` gradient of ``-sum c logp - sum e H``: what the coefficients mean."""
        outputs, weights = [scores.logp], [-update.coefficients.flatten(0, 1).float()]
        if update.entropy_coefficients is not None:
            outputs.append(scores.differentiable_entropy())
            weights.append(-update.entropy_coefficients.flatten(0, 1).float())
        pieces = torch.autograd.grad(outputs, self.parameters, weights, retain_graph=True, allow_unused=True)
        pairs = zip(self.parameters, pieces, strict=True)
        return torch.cat([(torch.zeros_like(p) if piece is None else piece).flatten() for p, piece in pairs])
