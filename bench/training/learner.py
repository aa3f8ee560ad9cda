"""The learner: score the batch, ask the method for coefficients, backpropagate them, step by `lr x step_scale`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.bench.feeding.source import under
from vcpo_bench.bench.optimizers.adamw import ADAMW
from vcpo_bench.bench.optimizers.catalog import Optimizer
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.training.backward import constant_rows, send_backward
from vcpo_bench.bench.training.evidence import evidence_of
from vcpo_bench.bench.training.gradients import FlatGradient, put_gradient
from vcpo_bench.bench.training.learner_step import LearnerStep, warmed
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.training.past_weights import PastWeights
from vcpo_bench.bench.training.routing import router_changes, router_shift, scores_of
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update
from vcpo_bench.records.diagnostic import GradientDiagnostic
from vcpo_bench.records.settings import Replay

GRAD_CLIP = 1.0
"""Largest l2 norm of the gradient that reaches the optimizer, as in both papers' code."""


class Learner:
    """Applies one method to one policy.

    Args:
        policy: Policy, trained in place.
        method: Maps the evidence of a step to coefficients.
        lr: Learning rate before the method's step scale.
        diagnostics: Gradient diagnostics to measure at every update.
        measure_norms: Measure score norms for the record even if the method does not need them, in a forward pass of
            their own, so that recording more never changes the training.
        micro_batches: Number of forward passes a batch is cut into, along prompts; the update does not depend on it.
        micro_tokens: Cut by length instead, into passes of at most this many positions, prompt and padding included;
            0: no limit.
        weight_decay: Decoupled weight decay of all trained parameters: each update shrinks them by
            lr x step scale x weight_decay.
        lr_warmup: Updates over which the learning rate rises linearly to `lr`; 0: it is `lr` throughout.
        largest_lag: Most updates between sampling and use, for methods that ask for past weights; None: no bound.
        optimizer: Makes the optimizer of the trained parameters.
        replay: Whose routes a mixture of experts uses when it scores (`CellSettings.replay`).

    Attributes:
        method_state: What the method returned at the last update and receives at the next.
        previous_gradient: `[D]` the last finite gradient, where a diagnostic or the method needs it.
        reference: Frozen copy of the start policy, where the method needs one.
        score_norms: What measures score norms.
    """

    score_norms: ClassVar[type[ScoreNorms]] = ScoreNorms

    def __init__(
        self,
        policy: Policy,
        method: Method,
        lr: float,
        diagnostics: Sequence[GradientDiagnostic] = (),
        measure_norms: bool = False,
        micro_batches: int = 1,
        micro_tokens: int = 0,
        weight_decay: float = 0.0,
        lr_warmup: int = 0,
        largest_lag: int | None = None,
        optimizer: Optimizer = ADAMW,
        replay: Replay = "off",
    ) -> None:
        self.policy, self.method, self.diagnostics = policy, method, diagnostics
        self.lr, self.lr_warmup = lr, lr_warmup
        self.micro_batches, self.micro_tokens = micro_batches, micro_tokens
        self.replay: Replay = replay
        self.optimizer = optimizer.build(policy, lr, weight_decay)
        self.method_state: dict[str, Tensor] = {}
        self.previous_gradient: Tensor | None = None
        self.reference = policy.replica() if "reference_logp" in method.needs else None
        self._past = PastWeights.wanted_by(method, policy, largest_lag)
        self._norms = self.score_norms(policy) if "score_norm_sq" in method.needs else None
        self._recorded_norms = self.score_norms(policy) if measure_norms and self._norms is None else None

    def update(self, batch: Trajectories, now: int) -> LearnerStep:
        """One optimizer step on `batch` at update number `now`; none if something was not finite."""
        began = perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        if self._past:
            self._past.begin(now)
        recorded_norms = self._record_norms(batch) if self._recorded_norms else None
        pieces = self._cut(batch)
        scored = [self._score(piece.part, keep_graph=len(pieces) == 1) for piece in pieces]
        parts = [(piece.part, scores) for piece, (scores, _) in zip(pieces, scored, strict=True)]
        routers = router_changes(self.policy, batch, now, parts, self.replay, partial(gather, pieces))
        evidence = self._evidence(batch, now, pieces, scored)
        middle = perf_counter()
        update, nonfinite, norms, scale = None, "", (math.nan, math.nan), math.nan
        measured: Mapping[str, float] = {}
        try:
            update = self.method(evidence)
            scale = float(update.step_scale)
            self._backward(pieces, scored[0][0], update)
            measured = self.observe_gradient()
            if self._past and self.method.compensate:
                self._past.compensate(self.method.compensate, batch, now)
            norms = self._step(self.rate(now), scale)
            if self._past and math.isfinite(norms[1]):
                self._past.end(now, scale)
            nonfinite = "" if math.isfinite(norms[1]) else "gradient" if math.isfinite(scale) else "step_scale"
            self.method_state = dict(update.state)
        except NonFiniteEvidence as problem:
            nonfinite = problem.field
        if self._norms:
            self._norms.release()
        return LearnerStep(
            logp=evidence.logp,
            entropy=self._gather(pieces, [s.entropy for s, _ in scored]).view_as(evidence.logp),
            score_norm_sq=evidence.score_norm_sq if recorded_norms is None else recorded_norms,
            update=update,
            nonfinite=nonfinite,
            grad_norm=norms[0],
            grad_norm_clipped=norms[1],
            step_scale=scale,
            routers=routers,
            measured=measured,
            seconds_score=middle - began,
            seconds_update=perf_counter() - middle,
        )

    def rate(self, now: int) -> float:
        """Learning rate of update number `now`, before the step scale."""
        return warmed(self.lr, self.lr_warmup, now)

    def logp(self, batch: Trajectories) -> Tensor:
        """`[P, G, T]` log-probabilities of a batch under the current policy, without gradient."""
        with torch.no_grad():
            return self._logp_under(self.policy, self._cut(batch), self.replay).view(batch.mask.shape)

    def tensors(self) -> dict[str, Tensor]:
        """What the rest of the run depends on: weights, optimizer, method state, previous gradient."""
        found = {f"policy/{name}": tensor for name, tensor in self.policy.trained_state().items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer/{index}/{name}": tensor for name, tensor in values.items()}
        found |= {f"method/{name}": tensor for name, tensor in self.method_state.items()}
        if self.previous_gradient is not None:
            found["previous_gradient"] = self.previous_gradient
        if self._past:
            found |= {f"past/{name}": tensor for name, tensor in self._past.tensors().items()}
        return found

    def load(self, tensors: dict[str, Tensor], same_method: bool) -> None:
        """Restore what `tensors` returned.

        Args:
            tensors: By name; other names are ignored.
            same_method: They are of a run with this method; else the method's own state is left out.
        """
        optimizer: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under(tensors, "optimizer/").items():
            index, _, key = name.partition("/")
            optimizer.setdefault(int(index), {})[key] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.policy.load_trained(under(tensors, "policy/"))
        self.optimizer.load_state_dict({"state": optimizer, "param_groups": groups})
        if same_method:
            self.method_state = under(tensors, "method/")
        if self._past:
            self._past.load(under(tensors, "past/"))
        previous = tensors.get("previous_gradient")
        self.previous_gradient = None if previous is None else previous.to(self.policy.device)

    def close(self) -> None:
        """It holds nothing outside this process."""

    def _record_norms(self, batch: Trajectories) -> Tensor:
        """`[P, G]` squared score norms, for the record only."""
        assert self._recorded_norms is not None
        pieces = self._cut(batch)
        squared = [self._norms_of(self._recorded_norms, piece.part)[1] for piece in pieces]
        self._recorded_norms.release()
        return self._gather(pieces, squared).view(batch.reward.shape)

    def _cut(self, batch: Trajectories) -> list[Piece]:
        return cut(batch, self.micro_batches, self.micro_tokens)

    def _gather(self, pieces: Sequence[Piece], values: Sequence[Tensor]) -> Tensor:
        return gather(pieces, values)

    def _logp_under(self, policy: Policy, pieces: list[Piece], replay: Replay = "off") -> Tensor:
        return self._gather(pieces, [scores_of(policy, piece.part, replay).logp for piece in pieces])

    def _forward(self, part: Trajectories) -> TokenScores:
        return scores_of(self.policy, part, self.replay, rows=bool(self._norms))  # norms need a trajectory per row

    def _norms_of(self, norms: ScoreNorms, part: Trajectories) -> tuple[TokenScores, Tensor]:
        """TokenScores of trajectories and their squared score norms `[rows]`."""
        with norms.record():
            scores = scores_of(self.policy, part, self.replay, rows=True)
        return scores, norms.squared_norms(scores.logp, scores.mask)

    def _score(self, part: Trajectories, keep_graph: bool) -> tuple[TokenScores, Tensor | None]:
        """TokenScores of one micro-batch `[rows, T]`, and its squared score norms `[rows]` if the method needs them."""
        if self._norms is None:
            with torch.set_grad_enabled(keep_graph):
                return self._forward(part), None
        scores, squared = self._norms_of(self._norms, part)
        if not keep_graph:
            self._norms.release()
        return scores, squared

    def _evidence(
        self, batch: Trajectories, now: int, pieces: list[Piece], scored: list[tuple[TokenScores, Tensor | None]]
    ) -> Batch:
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._logp_under(self.reference, pieces)
        norms = [squared for _, squared in scored if squared is not None]
        return evidence_of(
            batch,
            now,
            scores=[scores for scores, _ in scored],
            gather=lambda values: self._gather(pieces, values),
            needs=self.method.needs,
            score_norm_sq=self._gather(pieces, norms) if norms else None,
            reference_logp=reference,
            state=self.method_state,
            moved=self._past.evidence(batch, now) if self._past else {},
            router_shift=router_shift(
                self.method.needs, self.policy, pieces, self.replay, partial(self._gather, pieces)
            ),
        )

    def _backward(self, pieces: list[Piece], kept: TokenScores, update: Update) -> None:
        """Leave the gradient of the loss in `.grad`.

        A single micro-batch needs no second forward pass: its graph is reused, or, where score norms were taken, the
        gradient is assembled from what they kept (possible when each trajectory has one coefficient).
        """
        coefficients = update.coefficients.to(torch.float32).flatten(0, 1)
        bonus = update.entropy_coefficients
        entropy = None if bonus is None else bonus.to(torch.float32).flatten(0, 1)
        if len(pieces) == 1:
            rows = pieces[0].rows
            if self._norms is None:
                send_backward(kept, coefficients[rows], None if entropy is None else entropy[rows])
                return
            row = self._constant(coefficients[rows].to(kept.mask.device), kept.mask) if entropy is None else None
            if row is not None:
                self._norms.assemble(row)
                return
        for part, rows in pieces:
            send_backward(self._forward(part), coefficients[rows], None if entropy is None else entropy[rows])

    def _constant(self, coefficients: Tensor, mask: Tensor) -> Tensor | None:
        return constant_rows(coefficients, mask)

    def observe_gradient(self) -> dict[str, float]:
        """Values of the gradient diagnostics, before clipping; empty if the gradient is not finite.

        A method that acts on the gradient itself replaces it here by a g + b p, p the previous raw gradient.
        """
        if not (self.diagnostics or self.method.combine):
            return {}
        gradient = self._gradient()
        if not gradient.finite:
            return {}  # the step sees it too and is skipped; the last finite gradient is kept
        self.previous_gradient = gradient.flat
        measured = {one.name: one.measure(gradient) for one in self.diagnostics}  # pyright: ignore[reportArgumentType]
        if self.method.combine is not None and gradient.previous is not None:
            self._replace_gradient(gradient.flat, gradient.previous, *self.method.combine(gradient.dots))
        return measured

    def _gradient(self) -> FlatGradient:
        return FlatGradient(self.policy, self.policy.output_head(), self.previous_gradient)

    def _replace_gradient(self, gradient: Tensor, previous: Tensor, a: float, b: float) -> None:
        """Put a g + b p into `.grad`; nothing at all for (0, 0), so that the optimizer skips every parameter."""
        if (a, b) == (0.0, 0.0):
            self.optimizer.zero_grad(set_to_none=True)
            return
        put_gradient([p for p in self.policy.parameters() if p.grad is not None], a * gradient + b * previous)

    def _step(self, rate: float, scale: float) -> tuple[float, float]:
        """Clip and step; the gradient norm before and after. A gradient that is not finite moves nothing."""
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), GRAD_CLIP))
        if not (math.isfinite(norm) and math.isfinite(scale)):
            return norm, math.nan
        for group in self.optimizer.param_groups:
            group["lr"] = rate * scale
        self.optimizer.step()
        return norm, min(norm, GRAD_CLIP)
