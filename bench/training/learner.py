"""The learner: score, ask the method for coefficients, send them backward, step by `lr x step_scale`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update

GRAD_CLIP = 1.0
"""Largest l2 norm of the gradient that reaches the optimizer, as in both papers' code."""
DOT_LENGTH = 2**30
"""Longest vectors multiplied in one call."""


@dataclass(frozen=True, slots=True)
class LearnerStep:
    """What one update did.

    Attributes:
        logp: `[P, G, T]` log-probabilities under theta_t.
        entropy: `[P, G, T]` entropy of theta_t at every token, in nats.
        score_norm_sq: `[P, G]` squared score norms, where the method or the record asked for them.
        update: The method's answer; None when its evidence was not finite.
        nonfinite: What was not finite (a field of the evidence, or `gradient`): the step was skipped. Else empty.
        grad_norm: l2 norm before clipping.
        grad_norm_clipped: l2 norm after clipping.
        step_scale: The method's multiplier of the learning rate.
        grad_cosine: Cosine with the previous gradient, where gradients are watched; NaN at the first.
        head_grad_norm: l2 norm of the output head's gradient before clipping, where gradients are watched.
        seconds_score: Time of the forward passes, in seconds.
        seconds_update: Time of coefficients, backward passes and optimizer, in seconds.
    """

    logp: Tensor
    entropy: Tensor
    score_norm_sq: Tensor | None
    update: Update | None
    nonfinite: str
    grad_norm: float
    grad_norm_clipped: float
    step_scale: float
    grad_cosine: float
    head_grad_norm: float
    seconds_score: float
    seconds_update: float


class Learner:
    """Applies one method to one policy.

    Args:
        policy: Trained in place.
        method: Maps the evidence of a step to coefficients.
        lr: Learning rate of AdamW (0.9, 0.999) before the method's step scale.
        watch_gradient: Measure what needs the whole gradient of this step and the last.
        measure_norms: Measure score norms also for a method that does not need them, in a pass of their own, so that
            recording more never changes the training.
        micro_batches: Passes a batch is cut into, along prompts; the update does not depend on it.
        micro_tokens: Instead, most positions of a pass, prompt and padding included; 0: no limit.
        weight_decay: Decoupled, of all trained weights: each update shrinks them by lr x step scale x this.
    """

    def __init__(
        self,
        policy: Policy,
        method: Method,
        lr: float,
        watch_gradient: bool = False,
        measure_norms: bool = False,
        micro_batches: int = 1,
        micro_tokens: int = 0,
        weight_decay: float = 0.0,
    ) -> None:
        self.policy, self.method, self.lr = policy, method, lr
        self.micro_batches, self.micro_tokens = micro_batches, micro_tokens
        self.optimizer = torch.optim.AdamW(policy.trainable(), lr=lr, weight_decay=weight_decay, fused=True)
        self.method_state: dict[str, Tensor] = {}
        self.watch_gradient = watch_gradient or method.combine is not None
        self.previous_gradient: Tensor | None = None
        self.reference = policy.replica() if "reference_logp" in method.needs else None
        self._norms = ScoreNorms(policy) if "score_norm_sq" in method.needs else None
        self._probe = ScoreNorms(policy) if measure_norms and self._norms is None else None

    def update(self, batch: Trajectories, now: int) -> LearnerStep:
        """One optimizer step on `batch` at update number `now`; none if something was not finite."""
        began = perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        measured = self._measure(batch) if self._probe else None
        pieces = self._cut(batch)
        scored = [self._score(piece.part, keep_graph=len(pieces) == 1) for piece in pieces]
        evidence = self._evidence(batch, now, pieces, scored)
        middle = perf_counter()
        update, nonfinite, norms, scale, watched = None, "", (math.nan, math.nan), math.nan, (math.nan, math.nan)
        try:
            update = self.method(evidence)
            scale = float(update.step_scale)
            self._backward(pieces, scored[0][0], update)
            watched = self._watch()
            norms = self._step(scale)
            nonfinite = "" if math.isfinite(norms[1]) else "gradient" if math.isfinite(scale) else "step_scale"
            self.method_state = dict(update.state)
        except NonFiniteEvidence as problem:
            nonfinite = problem.field
        if self._norms:
            self._norms.release()
        return LearnerStep(
            logp=evidence.logp,
            entropy=self._gather(pieces, [s.entropy for s, _ in scored]).view_as(evidence.logp),
            score_norm_sq=evidence.score_norm_sq if measured is None else measured,
            update=update,
            nonfinite=nonfinite,
            grad_norm=norms[0],
            grad_norm_clipped=norms[1],
            step_scale=scale,
            grad_cosine=watched[0],
            head_grad_norm=watched[1],
            seconds_score=middle - began,
            seconds_update=perf_counter() - middle,
        )

    def _measure(self, batch: Trajectories) -> Tensor:
        """`[P, G]` squared score norms, for the record only."""
        assert self._probe is not None
        pieces = self._cut(batch)
        squared = [_norms_of(self.policy, self._probe, piece.part)[1] for piece in pieces]
        self._probe.release()
        return self._gather(pieces, squared).view(batch.reward.shape)

    def logp(self, batch: Trajectories) -> Tensor:
        """`[P, G, T]` log-probabilities of a batch under the current policy, without gradient."""
        with torch.no_grad():
            return self._logp_under(self.policy, self._cut(batch)).view(batch.mask.shape)

    def _cut(self, batch: Trajectories) -> list[Piece]:
        return cut(batch, self.micro_batches, self.micro_tokens)

    def _gather(self, pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
        return gather(pieces, values)

    def _logp_under(self, policy: Policy, pieces: list[Piece]) -> Tensor:
        return self._gather(pieces, [policy.score(*piece.part.flat()).logp for piece in pieces])

    def _forward(self, part: Trajectories) -> TokenScores:
        prompts, responses, mask = part.flat()
        if self._norms:  # they need one trajectory per row
            return self.policy.score_rows(part.flat_prompts(), responses, mask)
        return self.policy.score(prompts, responses, mask)

    def _score(self, part: Trajectories, keep_graph: bool) -> tuple[TokenScores, Tensor | None]:
        """Statistics of one micro-batch `[rows, T]` and its squared score norms `[rows]` where they are needed."""
        if self._norms is None:
            with torch.set_grad_enabled(keep_graph):
                return self._forward(part), None
        scores, squared = _norms_of(self.policy, self._norms, part)
        if not keep_graph:
            self._norms.release()
        return scores, squared

    def _evidence(
        self, batch: Trajectories, now: int, pieces: list[Piece], scored: list[tuple[TokenScores, Tensor | None]]
    ) -> Batch:
        shape, needs = batch.mask.shape, self.method.needs
        scores, norms = [s for s, _ in scored], [n for _, n in scored if n is not None]
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._logp_under(self.reference, pieces).view(shape)
        return Batch(
            logp=self._gather(pieces, [s.logp for s in scores]).view(shape),
            behavior_logp=batch.behavior_logp,
            mask=batch.mask,
            valid=torch.ones(shape[:2], dtype=torch.bool),
            reward=batch.reward,
            version=batch.version,
            now=now,
            proximal_logp=batch.proximal_logp,
            reference_logp=reference,
            entropy=self._gather(pieces, [s.entropy for s in scores]).view(shape) if "entropy" in needs else None,
            sum_pi_sq=self._gather(pieces, [s.sum_pi_sq for s in scores]).view(shape) if "sum_pi_sq" in needs else None,
            score_norm_sq=self._gather(pieces, norms).view(shape[:2]) if norms else None,
            state=self.method_state,
        )

    def _backward(self, pieces: list[Piece], kept: TokenScores, update: Update) -> None:
        """Leave the gradient of the loss in `.grad`.

        A lone micro-batch needs no second forward: its graph is used again, or, where score norms were taken, the
        gradient is assembled from what they kept (possible when each trajectory has one coefficient).
        """
        coefficients = update.coefficients.to(torch.float32).flatten(0, 1)
        bonus = update.entropy_coefficients
        entropy = None if bonus is None else bonus.to(torch.float32).flatten(0, 1)
        if len(pieces) == 1:
            if self._norms is None:
                _send(kept, coefficients, entropy)
                return
            row = _constant_rows(coefficients.to(kept.mask.device), kept.mask) if entropy is None else None
            if row is not None:
                self._norms.assemble(row)
                return
        for part, rows in pieces:
            _send(self._forward(part), coefficients[rows], None if entropy is None else entropy[rows])

    def _watch(self) -> tuple[float, float]:
        """Cosine with the previous gradient and the norm of the head's own, before clipping.

        A method that acts on the gradient itself replaces it here by a g + b p, p the previous raw gradient.
        """
        if not self.watch_gradient:
            return math.nan, math.nan
        gradient = _flat_gradient(self.policy)
        if not bool(torch.isfinite(gradient).all()):
            return math.nan, math.nan  # the step will see it too and be skipped; the last good gradient is kept
        previous, self.previous_gradient = self.previous_gradient, gradient
        head = _gradient_norm(self.policy.output_head())
        if previous is None:
            return math.nan, head
        dots = (_dot(gradient, gradient), _dot(gradient, previous), _dot(previous, previous))
        if self.method.combine is not None:
            self._replace_gradient(gradient, previous, *self.method.combine(dots))
        product = math.sqrt(dots[0]) * math.sqrt(dots[2])
        return dots[1] / product if product > 0 else math.nan, head

    def _replace_gradient(self, gradient: Tensor, previous: Tensor, a: float, b: float) -> None:
        """Put a g + b p into `.grad`; nothing at all for (0, 0), so that the optimizer skips every parameter."""
        if (a, b) == (0.0, 0.0):
            self.optimizer.zero_grad(set_to_none=True)
            return
        with_grad = [p for p in self.policy.parameters() if p.grad is not None]
        pieces = torch.split(a * gradient + b * previous, [p.numel() for p in with_grad])
        for parameter, piece in zip(with_grad, pieces, strict=True):
            parameter.grad = piece.view_as(parameter).clone()

    def _step(self, scale: float) -> tuple[float, float]:
        """Clip and step; the gradient norm before and after. A gradient that is not finite moves nothing."""
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), GRAD_CLIP))
        if not (math.isfinite(norm) and math.isfinite(scale)):
            return norm, math.nan
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * scale
        self.optimizer.step()
        return norm, min(norm, GRAD_CLIP)


def _flat_gradient(module: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def _dot(left: Tensor, right: Tensor) -> float:
    """Inner product of two vectors; in pieces, because that of a GPU counts no further than 2^31 - 1."""
    pairs = zip(torch.split(left, DOT_LENGTH), torch.split(right, DOT_LENGTH), strict=True)
    return sum(float(a @ b) for a, b in pairs)


def _gradient_norm(module: nn.Module) -> float:
    """l2 norm of a module's own gradient; NaN where it is frozen."""
    if not any(p.grad is not None for p in module.parameters()):
        return math.nan
    return float(_flat_gradient(module).norm())


def _norms_of(policy: Policy, norms: ScoreNorms, part: Trajectories) -> tuple[TokenScores, Tensor]:
    """Scores of trajectories and their squared score norms `[rows]`."""
    _, responses, mask = part.flat()
    with norms.record():
        scores = policy.score_rows(part.flat_prompts(), responses, mask)
    return scores, norms.squared_norms(scores.logp, scores.mask)


def _send(scores: TokenScores, coefficients: Tensor, entropy_coefficients: Tensor | None) -> None:
    """Backward of `-sum c logp - sum e H`: what the coefficients mean."""
    device = scores.logp.device
    outputs, gradients = [scores.logp], [-coefficients.to(device)]
    if entropy_coefficients is not None:
        outputs.append(scores.differentiable_entropy())
        gradients.append(-entropy_coefficients.to(device))
    torch.autograd.backward(outputs, gradients)


def _constant_rows(coefficients: Tensor, mask: Tensor) -> Tensor | None:
    """`[rows]` the one coefficient of each trajectory's tokens, or None where they differ."""
    first = coefficients.gather(1, mask.long().argmax(1, keepdim=True))
    constant = torch.equal(torch.where(mask, first, 0.0), torch.where(mask, coefficients, 0.0))
    return first.squeeze(1) if constant else None
