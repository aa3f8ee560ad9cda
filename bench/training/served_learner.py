"""The learner of a cell whose weights are on a server: coefficients are computed here, gradients and steps there."""

from __future__ import annotations

import math
from abc import abstractmethod
from time import perf_counter
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from vcpo_bench.bench.feeding.source import under
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.training.evidence import evidence_of
from vcpo_bench.bench.training.learner import ask
from vcpo_bench.bench.training.learner_settings import warmed
from vcpo_bench.bench.training.learner_step import GRAD_CLIP, NO_STEP, LearnerStep, StepMade
from vcpo_bench.bench.trajectories import Responses, Trajectories
from vcpo_bench.methods import Method, Update

_STATE = "served/state"
"""Tensor of a checkpoint with the name, in UTF-8, under which the server keeps weights and optimizer."""
_VERSION = "served/version"
_WITNESS = "served/witness"


@runtime_checkable
class ServedPolicy(Protocol):
    """What a policy can do whose weights are on a server, beside being a `Policy`.

    Attributes:
        version: Steps made.
    """

    version: int

    @abstractmethod
    def step(self, given: Responses, logp: Tensor, coefficients: Tensor, rate: float, clip: float) -> float:
        """One optimizer step along `-sum c d log pi`; returns the norm of the gradient, NaN where it is unknown."""

    @abstractmethod
    def save_state(self) -> str:
        """Save weights and optimizer there; returns their name."""

    @abstractmethod
    def witness(self) -> Tensor:
        """[T] numbers by which the current weights are known again."""

    @abstractmethod
    def load_state(self, path: str, version: int, witness: Tensor) -> None:
        """Continue with what was saved under a name after `version` steps, when `witness` returned these numbers."""

    @abstractmethod
    def close(self) -> None:
        """Free its place on the server."""


class ServedLearner:
    """Applies one method to a policy on a server: a `CellLearner`.

    An update costs one forward pass more than in process: the coefficients depend on current log-probabilities, so the
    server is asked for those first. Entropies are unknown. The server is asked to clip as `Learner` does; whether it
    does is not known here, so the norm after clipping is recorded as NaN.

    Args:
        policy: A `Policy` that is a `ServedPolicy`.
        method: Maps the evidence of a step to coefficients; it needs none that a server does not send.
        lr: Learning rate before the method's step scale.
        lr_warmup: Updates over which the learning rate rises linearly to `lr`; 0: it is `lr` throughout.

    Attributes:
        method_state: What the method returned at the last update and receives at the next.
    """

    def __init__(self, policy: Policy, method: Method, lr: float, lr_warmup: int = 0) -> None:
        assert isinstance(policy, ServedPolicy)
        self.policy: Policy = policy
        self.served: ServedPolicy = policy
        self.method, self.lr, self.lr_warmup = method, lr, lr_warmup
        self.method_state: dict[str, Tensor] = {}

    def update(self, batch: Trajectories, now: int) -> LearnerStep:
        """One optimizer step on `batch` at update number `now`; none if something was not finite.

        Raises:
            RuntimeError: The server is away, refused, or had a gradient that is not finite.
        """
        began = perf_counter()
        scores = self._score(batch)
        evidence = evidence_of(
            batch,
            now,
            scores=[scores],
            gather=lambda values: values[0],
            needs=self.method.needs,
            state=self.method_state,
        )
        middle = perf_counter()
        answer = ask(self.method, evidence)
        made = self._take_step(batch, scores.logp, answer, now) if isinstance(answer, Update) else NO_STEP
        return LearnerStep(
            logp=evidence.logp,
            entropy=scores.entropy.view_as(evidence.logp),
            score_norm_sq=None,
            answer=answer,
            made=made,
            routers={},
            seconds_score=middle - began,
            seconds_update=perf_counter() - middle,
        )

    def rate(self, now: int) -> float:
        """Learning rate of update number `now`, before the step scale."""
        return warmed(self.lr, self.lr_warmup, now)

    def logp(self, batch: Trajectories) -> Tensor:
        """`[P, G, T]` log-probabilities of a batch under the current policy."""
        return self._score(batch).logp.view(batch.mask.shape)

    def tensors(self) -> dict[str, Tensor]:
        """The name of a state saved on the server just now, and the method's state."""
        name = torch.tensor(list(self.served.save_state().encode()), dtype=torch.uint8)
        found = {_STATE: name, _VERSION: torch.tensor(self.served.version), _WITNESS: self.served.witness()}
        return found | {f"method/{name}": tensor for name, tensor in self.method_state.items()}

    def load(self, tensors: dict[str, Tensor], same_method: bool) -> None:
        """Restore what `tensors` returned.

        Args:
            tensors: By name; other names are ignored.
            same_method: They are of a run with this method; else the method's own state is left out.

        Raises:
            RuntimeError: The server is away.
            LostStateError: It does not load that state.
        """
        name = bytes(tensors[_STATE].tolist()).decode()
        self.served.load_state(name, int(tensors[_VERSION]), tensors[_WITNESS])
        if same_method:
            self.method_state = under(tensors, "method/")

    def close(self) -> None:
        """Free the policy's place on the server."""
        self.served.close()

    def _score(self, batch: Trajectories) -> TokenScores:
        return self.policy.score(batch.flat())

    def _take_step(self, batch: Trajectories, logp: Tensor, update: Update, now: int) -> StepMade:
        """Have the server step, unless something is not finite; it may not say the norm of the gradient."""
        scale, nonfinite, norm = float(update.step_scale), _not_finite(update), math.nan
        if not nonfinite:
            coefficients = update.coefficients.to(torch.float32).flatten(0, 1)
            norm = self.served.step(batch.flat(), logp, coefficients, self.rate(now) * scale, GRAD_CLIP)
            if math.isinf(norm):
                raise RuntimeError("the server's gradient was not finite, and its weights have been stepped with it")
        self.method_state = dict(update.state)
        return StepMade(scale, norm, math.nan, nonfinite, {})


def _not_finite(update: Update) -> str:
    """What of an update is not finite: nothing may be stepped with it, since the server would not refuse."""
    if not bool(torch.isfinite(update.coefficients).all()):
        return "gradient"
    return "" if math.isfinite(float(update.step_scale)) else "step_scale"
