"""A policy whose weights are on a Tinker server: it samples, scores, steps, saves and loads there."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from vcpo_bench.bench.learners.tinker_api.rows import LOSS, Row, averaged_over, datum, pieces, read_logp, unpadded
from vcpo_bench.bench.learners.tinker_api.service import RequestRefusedError, Service, ready
from vcpo_bench.bench.learners.tinker_api.witness import WITNESS, nothing_loaded
from vcpo_bench.bench.optimizers.adamw import ADAMW, AdamW
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, Request, check, whole
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.errors import LostStateError

_SEEDS = 2**31 - 2**16
"""Seeds below this fit, with the number of a sample added, into 32 bits."""
_SEED = 0
"""Seed of the random half of the adapters; the other half starts at zero, so that training starts at the model."""


@dataclass(frozen=True)
class ServedScores:
    """`policies.scores.TokenScores` without the distribution, which a server does not send.

    Attributes:
        logp: float32 [B, T], without gradient.
        mask: bool [B, T].
    """

    logp: Tensor
    mask: Tensor

    @property
    def entropy(self) -> Tensor:
        """[B, T] NaN: unknown."""
        return torch.where(self.mask, math.nan, 0.0)

    @property
    def sum_pi_sq(self) -> Tensor:
        """[B, T] NaN: unknown."""
        return self.entropy

    def differentiable_entropy(self) -> Tensor:
        """It has none."""
        _unavailable()


@dataclass(frozen=True)
class ServedModel:
    """What a cell trains on its server.

    Attributes:
        base: Name of the base model, as the server calls it.
        pad: Padding token of prompts.
        rank: Rank of the adapters.
        reduction: What the server does with the losses of a batch: `mean` or `sum`.
        optimizer: AdamW and its parameters.
        weight_decay: Decoupled weight decay.
    """

    base: str
    pad: int
    rank: int
    reduction: str
    optimizer: AdamW = ADAMW
    weight_decay: float = 0.0


class TinkerPolicy(Policy):
    """Adapters on a Tinker server. Token ids go in and come out; there are no parameters in this process.

    Samples come from the weights of the last step. They are published at the first sample after it, so that the
    version that drew a token is known exactly.

    Args:
        service: The server.
        model: What is trained there.

    Attributes:
        version: Steps made, loaded ones included.
    """

    def __init__(self, service: Service, model: ServedModel) -> None:
        super().__init__()
        self.service, self.model, self.version = service, model, 0
        self._trained: Any = None
        self._sampling: tuple[int, Any] | None = None
        self._saved: tuple[int, str] | None = None

    @property
    def device(self) -> torch.device:
        """Where its tensors are: main memory."""
        return torch.device("cpu")

    @property
    def trained(self) -> Any:
        """The client's training client; the first use makes a new model at the start policy."""
        if self._trained is None:
            client, model = self.service.client, self.model
            self._trained = self.service.call(
                "create_lora_training_client",
                lambda: ready(
                    client.create_lora_training_client(
                        model.base, rank=model.rank, seed=_SEED, train_mlp=True, train_attn=True, train_unembed=False
                    )
                ),
            )
        return self._trained

    def real(self, prompts: Tensor) -> Tensor:
        """Bool, the shape of prompts [P, Lp]: True from the first token on that is not padding."""
        return (prompts != self.model.pad).cumsum(1) > 0

    def score(self, given: Responses) -> ServedScores:
        """See `Policy.score`; without gradient, one `forward` on the server, over all tokens."""
        assert given.kept is None, "refused when the grid is planned"
        return ServedScores(self._forward(self._rows(given), given.mask), given.mask)

    def _forward(self, rows: Sequence[Row], mask: Tensor) -> Tensor:
        trained, types = self.trained, self.service.types
        data = [datum(types, row, *[[0.0] * len(row.response)] * 2) for row in rows]
        done = self.service.call("forward", lambda: trained.forward(data, LOSS).result())
        return read_logp(done.loss_fn_outputs, rows, mask)

    def step(self, given: Responses, logp: Tensor, coefficients: Tensor, rate: float, clip: float) -> float:
        """One AdamW step along `-sum c d log pi`; returns the norm of the gradient, NaN where the server says none.

        The loss is importance sampling with the current log-probabilities as reference: its ratio is 1, and its
        gradient in the log-probability of a token is minus the coefficient.

        Args:
            given: The responses.
            logp: [B, T] log-probabilities under the current weights, from `score`.
            coefficients: [B, T] c of each token.
            rate: Learning rate, step scale included.
            clip: Largest gradient norm that is asked for; not every server clips.
        """
        rows, mask, trained, types = self._rows(given), given.mask, self.trained, self.service.types
        shares = averaged_over(rows, self.model.reduction)
        data = [
            datum(types, row, logp[i][mask[i]].tolist(), (coefficients[i][mask[i]].double() * shares[i]).tolist())
            for i, row in enumerate(rows)
        ]
        # The step is not sent before the gradient is there: SkyRL's engine can take it first, without a gradient.
        self.service.call("forward_backward", lambda: trained.forward_backward(data, LOSS).result())
        done = self.service.call("optim_step", lambda: trained.optim_step(self._adam(rate, clip)).result())
        self.version += 1
        norms = [value for name, value in (done.metrics or {}).items() if name.endswith("grad_norm")]
        return float(norms[0]) if norms else math.nan

    def _adam(self, rate: float, clip: float) -> Any:
        own, model = self.model.optimizer, self.model
        return self.service.types.AdamParams(
            learning_rate=rate,
            beta1=own.beta1,
            beta2=own.beta2,
            eps=own.eps,
            weight_decay=model.weight_decay,
            grad_clip_norm=clip,
        )

    def sample(self, draw: Draw) -> Rollout:
        """See `Policy.sample`; the number at a row's first position becomes the seed of its request.

        Rows of one prompt that follow each other are one request, whose samples the server seeds one by one.
        """
        assert draw.truncation is None, "refused when the grid is planned"
        group, sampling = draw.rows // len(draw.prompts), self._published()
        asked = [prompt[kept].tolist() for prompt, kept in zip(draw.prompts, self.real(draw.prompts), strict=True)]
        cut = pieces(draw.rows, group, draw.greedy)
        futures = [
            sampling.sample(
                prompt=self.service.types.ModelInput.from_ints(asked[piece.start // group]),
                num_samples=len(piece),
                sampling_params=self._sampling_parameters(draw, piece.start, cold),
            )
            for piece, cold in cut
        ]
        found = self.service.call("sample", lambda: [future.result().sequences for future in futures])
        answers = []
        for (piece, _), sequences in zip(cut, found, strict=True):
            request = Request(asked[piece.start // group], draw.length, 0, draw.eos)
            given = [Answer(list(one.tokens), list(one.logprobs or ())) for one in sequences]
            if len(given) != len(piece):
                raise RuntimeError(f"tinker_answer_broken: {len(given)} samples where {len(piece)} were asked for")
            answers += [check(request, answer) for answer in given]
        return whole(answers, draw.length, draw.eos)

    def _sampling_parameters(self, draw: Draw, row: int, cold: bool) -> Any:
        return self.service.types.SamplingParams(
            max_tokens=draw.length,
            seed=int(float(draw.uniforms[row, 0]) * _SEEDS),
            stop=None if draw.eos is None else [draw.eos],
            temperature=0.0 if cold else 1.0,
            top_k=-1,
            top_p=1.0,
        )

    def _published(self) -> Any:
        """The client that samples from the weights of this version."""
        if self._sampling is None or self._sampling[0] != self.version:
            trained = self.trained
            sampling = self.service.call(
                "save_weights_for_sampler", lambda: ready(trained.save_weights_and_get_sampling_client())
            )
            self._sampling = (self.version, sampling)
        return self._sampling[1]

    def save_state(self) -> str:
        """Save weights and optimizer on the server; returns the name by which `load_state` finds them."""
        if self._saved is None or self._saved[0] != self.version:
            name, trained = f"vcpo-bench-{self.version}-{uuid.uuid4().hex[:8]}", self.trained
            path = self.service.call("save_state", lambda: trained.save_state(name).result().path)
            self._saved = (self.version, str(path))
        return self._saved[1]

    def witness(self) -> Tensor:
        """[T] log-probabilities of a few fixed tokens, by which `load_state` knows the weights again."""
        return self._forward([WITNESS], torch.ones(1, len(WITNESS.response), dtype=torch.bool))[0]

    def load_state(self, path: str, version: int, witness: Tensor) -> None:
        """Continue with weights and optimizer that were saved.

        Args:
            path: What `save_state` returned, in this process or another one.
            version: Steps they have seen.
            witness: What `witness` returned when they were saved.

        Raises:
            LostStateError: The server refused, or its weights are untrained afterwards.
        """
        self.close()
        trained, untrained = self.trained, self.witness()
        try:
            self.service.call(f"load_state {path}", lambda: trained.load_state_with_optimizer(path).result())
        except RequestRefusedError as refused:
            raise LostStateError(str(refused)) from None
        if nothing_loaded(self.witness(), witness, untrained):
            raise LostStateError(f"tinker_state_lost: {self.service.url}, load_state {path}: its weights are untrained")
        self.version, self._sampling, self._saved = version, None, (version, path)

    def close(self) -> None:
        """Free the place of the model on the server."""
        if self._trained is not None:
            self.service.unload(str(self._trained.model_id))
            self._trained = None

    def _rows(self, given: Responses) -> list[Row]:
        return unpadded(given.prompts, self.real(given.prompts), given.responses, given.mask)

    def score_rows(self, given: Responses) -> NoReturn:
        """It has none."""
        _unavailable()

    def decoding(self, prompts: Tensor, rows: int, length: int) -> NoReturn:
        """It has none."""
        _unavailable()

    def extend(self, *_: Any, **__: Any) -> NoReturn:
        """It has none."""
        _unavailable()

    def output_head(self) -> NoReturn:
        """It has none."""
        _unavailable()


def _unavailable() -> NoReturn:
    raise RuntimeError("a policy on a Tinker server cannot do this; TinkerLearner.check refuses what needs it")
