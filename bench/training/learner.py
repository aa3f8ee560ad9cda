"""The learner: score the batch, ask the method for coefficients, backpropagate them, step by `lr x step_scale`."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.feeding.source import under
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.training.backward import constant_rows, send_backward
from vcpo_bench.bench.training.evidence import evidence_of
from vcpo_bench.bench.training.gradients import FlatGradient, put_gradient
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.learner_step import GRAD_CLIP, NO_STEP, LearnerStep, StepMade
from vcpo_bench.bench.training.micro_batches import Piece, cut, gather
from vcpo_bench.bench.training.past_weights import PastWeights
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, Update


class Scored(NamedTuple):
    """What the forward passes of an update found.

    Attributes:
        pieces: The batch, cut.
        scores: Of each piece; with their graph if there is only one.
        evidence: What the method is asked about.
        norms: `[P, G]` squared score norms that were measured for the record only.
    """

    pieces: list[Piece]
    scores: list[TokenScores]
    evidence: Batch
    norms: Tensor | None


class Learner:
    """Applies one method to one policy.

    Attributes:
        method_state: What the method returned at the last update and receives at the next.
        previous_gradient: `[D]` the last finite gradient, where a diagnostic or the method needs it.
        reference: Frozen copy of the start policy, where the method needs one.
    """

    def __init__(self, policy: Policy, method: Method, settings: LearnerSettings) -> None:
        self.policy, self.method, self.settings = policy, method, settings
        self.optimizer = settings.optimizer.build(policy, settings.lr, settings.weight_decay)
        self.method_state: dict[str, Tensor] = {}
        self.previous_gradient: Tensor | None = None
        self.reference = policy.replica() if "reference_logp" in method.needs else None
        self._past = PastWeights.wanted_by(method, policy, settings.largest_lag)
        self._norms = ScoreNorms(policy) if "score_norm_sq" in method.needs else None
        measured_apart = settings.measure_norms and self._norms is None
        self._recorded_norms = ScoreNorms(policy) if measured_apart else None

    def update(self, batch: Trajectories, now: int) -> LearnerStep:
        """One optimizer step on `batch` at update number `now`; none if something was not finite."""
        began = perf_counter()
        scored = self._score_all(batch, now)
        middle = perf_counter()
        answer = ask(self.method, scored.evidence)
        made = self._take_step(scored, answer, batch, now) if isinstance(answer, Update) else NO_STEP
        if self._norms:
            self._norms.release()
        evidence = scored.evidence
        return LearnerStep(
            logp=evidence.logp,
            entropy=gather(scored.pieces, [each.entropy for each in scored.scores]).view_as(evidence.logp),
            score_norm_sq=evidence.score_norm_sq if scored.norms is None else scored.norms,
            answer=answer,
            made=made,
            seconds_score=middle - began,
            seconds_update=perf_counter() - middle,
        )

    def _score_all(self, batch: Trajectories, now: int) -> Scored:
        """The forward passes, and the evidence from them."""
        self.optimizer.zero_grad(set_to_none=True)
        if self._past:
            self._past.begin(now)
        recorded = self._record_norms(batch) if self._recorded_norms else None
        pieces = self._cut(batch)
        found = [self._score(piece.part, keep_graph=len(pieces) == 1) for piece in pieces]
        scores = [each for each, _ in found]
        squared = [norms for _, norms in found if norms is not None]
        return Scored(pieces, scores, self._evidence(batch, now, pieces, scores, squared), recorded)

    def _take_step(self, scored: Scored, update: Update, batch: Trajectories, now: int) -> StepMade:
        """Backpropagate the coefficients, and step along the clipped gradient."""
        scale = float(update.step_scale)
        self._backward(scored, update)
        measured = self.observe_gradient()
        if self._past and self.method.compensate:
            self._past.compensate(self.method.compensate, batch, now)
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), GRAD_CLIP))
        made = StepMade.of(scale, norm, measured)
        if made.moved:
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate(now) * scale
            self.optimizer.step()
        if self._past and made.moved:
            self._past.end(now, scale)
        self.method_state = dict(update.state)
        return made

    def rate(self, now: int) -> float:
        """Learning rate of update number `now`, before the step scale."""
        return self.settings.rate(now)

    def logp(self, batch: Trajectories) -> Tensor:
        """`[P, G, T]` log-probabilities of a batch under the current policy, without gradient."""
        with torch.no_grad():
            return self._logp_under(self.policy, self._cut(batch)).view(batch.mask.shape)

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

    def _record_norms(self, batch: Trajectories) -> Tensor:
        """`[P, G]` squared score norms, for the record only."""
        assert self._recorded_norms is not None
        pieces = self._cut(batch)
        squared = [self._norms_of(self._recorded_norms, piece.part)[1] for piece in pieces]
        self._recorded_norms.release()
        return gather(pieces, squared).view(batch.reward.shape)

    def _cut(self, batch: Trajectories) -> list[Piece]:
        return cut(batch, self.settings.micro_tokens)

    def _logp_under(self, policy: Policy, pieces: list[Piece]) -> Tensor:
        return gather(pieces, [policy.score(piece.part.flat()).logp for piece in pieces])

    def _forward(self, part: Trajectories) -> TokenScores:
        given = part.flat()
        return self.policy.score_rows(given.each) if self._norms else self.policy.score(given)  # norms need a row each

    def _norms_of(self, norms: ScoreNorms, part: Trajectories) -> tuple[TokenScores, Tensor]:
        """TokenScores of trajectories and their squared score norms `[rows]`."""
        with norms.record():
            scores = self.policy.score_rows(part.flat().each)
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
        self,
        batch: Trajectories,
        now: int,
        pieces: list[Piece],
        scores: list[TokenScores],
        squared_norms: list[Tensor],
    ) -> Batch:
        reference = None
        if self.reference is not None:
            with torch.no_grad():
                reference = self._logp_under(self.reference, pieces)
        gathered = partial(gather, pieces)
        return evidence_of(
            batch,
            now,
            scores,
            gathered,
            needs=self.method.needs,
            score_norm_sq=gathered(squared_norms) if squared_norms else None,
            reference_logp=reference,
            state=self.method_state,
            moved=self._past.evidence(batch, now) if self._past else {},
        )

    def _backward(self, scored: Scored, update: Update) -> None:
        """Leave the gradient of the loss in `.grad`.

        A single micro-batch needs no second forward pass: its graph is reused, or, where score norms were taken, the
        gradient is assembled from what they kept (possible when each trajectory has one coefficient).
        """
        if len(scored.pieces) == 1:
            rows, kept = scored.pieces[0].rows, scored.scores[0]
            if self._norms is None:
                send_backward(kept, update, rows)
                return
            row = constant_rows(update, rows, kept.mask)
            if row is not None:
                self._norms.assemble(row)
                return
        for part, rows in scored.pieces:
            send_backward(self._forward(part), update, rows)

    def observe_gradient(self) -> dict[str, float]:
        """Values of the gradient diagnostics, before clipping; empty if the gradient is not finite.

        A method that acts on the gradient itself replaces it here by a g + b p, p the previous raw gradient.
        """
        if not (self.settings.diagnostics or self.method.combine):
            return {}
        gradient = FlatGradient(self.policy, self.policy.output_head(), self.previous_gradient)
        if not gradient.finite:
            return {}  # the step sees it too and is skipped; the last finite gradient is kept
        self.previous_gradient = gradient.flat
        measured = {one.name: one.measure(gradient) for one in self.settings.diagnostics}  # pyright: ignore[reportArgumentType]
        if self.method.combine is not None and gradient.previous is not None:
            self._replace_gradient(gradient.flat, gradient.previous, *self.method.combine(gradient.dots))
        return measured

    def _replace_gradient(self, gradient: Tensor, previous: Tensor, a: float, b: float) -> None:
        """Put a g + b p into `.grad`; nothing at all for (0, 0), so that the optimizer skips every parameter."""
        if (a, b) == (0.0, 0.0):
            self.optimizer.zero_grad(set_to_none=True)
            return
        put_gradient([p for p in self.policy.parameters() if p.grad is not None], a * gradient + b * previous)


def ask(method: Method, evidence: Batch) -> Update | NonFiniteEvidence:
    """The method's answer, or what of the evidence it found not finite."""
    try:
        return method(evidence)
    except NonFiniteEvidence as problem:
        return problem
