"""What the trained model says about responses: log-probabilities, entropies, squared probabilities, score norms."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.locality import PROXY
from vcpo_bench.bench.score_norms import InexactError, ScoreNorms
from vcpo_bench.bench.score_norms.sharing import Contribution
from vcpo_bench.errors import UsageError


@dataclass(frozen=True)
class Scores:
    """Of the responses of one micro-batch, without gradient.

    Attributes:
        logp: `[B, T]` log-probability of each token.
        entropy: `[B, T]` nats.
        sum_pi_sq: `[B, T]` sum over the vocabulary of squared probabilities, where asked for.
        score_norm_sq: `[B]` squared norm of the gradient of the row's summed log-probability, where asked for.
        left: What the norms left, from which the gradient can be had.
    """

    logp: Tensor
    entropy: Tensor
    sum_pi_sq: Tensor | None = None
    score_norm_sq: Tensor | None = None
    left: Sequence[Contribution] = ()


class Scorer:
    """Scores responses with a trainer's model. The model is in evaluation mode meanwhile, as when it samples.

    Args:
        trainer: A `GRPOTrainer`.
        needs: Optional fields of a batch that the method reads.

    Raises:
        UsageError: Score norms are needed and the model has a layer for which they are impossible.
    """

    def __init__(self, trainer: Any, needs: Collection[str]) -> None:
        self._trainer = trainer
        self._squares = "sum_pi_sq" in needs
        accepted = inspect.signature(trainer._get_per_token_logps_and_entropies).parameters
        self._passed = [name for name in accepted if name not in ("model", "input_ids", "attention_mask")]
        if self._squares:
            _let_head_return_squares(trainer)
        self._norms: ScoreNorms | None = None
        if "score_norm_sq" in needs:
            try:
                self._norms = ScoreNorms(trainer.model)
            except InexactError as error:
                raise UsageError(f"exact score norms are impossible for this model ({error}): {PROXY}") from None
        # elsewhere the trainer's fused head and the model's own round differently
        single = all(parameter.dtype is torch.float32 for parameter in trainer.model.parameters())
        self._one_pass = single and trainer.accelerator.mixed_precision == "no"

    @torch.no_grad()
    def score(self, inputs: Mapping[str, Any]) -> Scores:
        """Everything the method asks for, under the current weights."""
        of_norms = None if self._norms is None else self._score_with_norms(self._norms, inputs)
        if of_norms is not None and self._one_pass:
            return of_norms
        with _evaluating(self._trainer.model) as model, _outputs_of(model) as outputs:
            logp, entropy = self._forward(model, inputs, rows=None, entropy=True)
        squares = [output.log_sum_sq_probs[:, -logp.shape[1] :].exp() for output in outputs] if self._squares else None
        found = Scores(logp=logp, entropy=entropy, sum_pi_sq=None if squares is None else torch.cat(squares))
        if of_norms is None:
            return found
        return replace(found, score_norm_sq=of_norms.score_norm_sq, left=of_norms.left)

    @torch.no_grad()
    def logp(self, inputs: Mapping[str, Any], rows: int) -> Tensor:
        """`[B, T]` log-probabilities alone."""
        with _evaluating(self._trainer.model) as model:
            return self._forward(model, inputs, rows=rows, entropy=False)[0]

    def differentiable(self, model: Any, inputs: Mapping[str, Any], entropy: bool) -> tuple[Tensor, Tensor]:
        """`[B, T]` log-probabilities and, where asked for, entropies with gradient, under the model as it is."""
        return self._forward(model, inputs, rows=None, entropy=entropy)

    def _forward(self, model: Any, inputs: Mapping[str, Any], rows: int | None, entropy: bool) -> tuple[Tensor, Any]:
        ids, attended, width = _whole(inputs)
        extras = {name: inputs[name] for name in self._passed if inputs.get(name) is not None}
        logp, entropies, _ = self._trainer._get_per_token_logps_and_entropies(
            model, ids, attended, width, batch_size=rows, compute_entropy=entropy, **extras
        )
        return logp, entropies

    @torch.enable_grad()
    def _score_with_norms(self, norms: ScoreNorms, inputs: Mapping[str, Any]) -> Scores:
        """The plain head is used: the trainer's fused one hides the layer's inputs from `ScoreNorms`."""
        ids, attended, width = _whole(inputs)
        with _evaluating(self._trainer.model) as model, self._trainer.accelerator.autocast(), norms.record():
            logits = model(input_ids=ids, attention_mask=attended, use_cache=False).logits[:, -width - 1 : -1]
            every = (logits.float() / self._trainer.temperature).log_softmax(-1)
            logp = every.gather(-1, ids[:, -width:].unsqueeze(-1)).squeeze(-1)
        try:
            squared = norms.squared_norms(logp, loss_mask(inputs))
        except InexactError as error:
            raise UsageError(f"exact score norms are impossible for this model ({error}): {PROXY}") from None
        left = norms.contributions()
        norms.release()
        every = every.detach()
        return Scores(
            logp=logp.detach(),
            entropy=-torch.linalg.vecdot(every.exp(), every),
            sum_pi_sq=(2 * every).exp().sum(-1) if self._squares else None,
            score_norm_sq=squared,
            left=left,
        )


def loss_mask(inputs: Mapping[str, Any]) -> Tensor:
    """`[B, T]` bool, True at tokens that the policy generated and that carry loss."""
    mask: Tensor = inputs["completion_mask"].bool()
    return mask & inputs["tool_mask"].bool() if inputs.get("tool_mask") is not None else mask


def _whole(inputs: Mapping[str, Any]) -> tuple[Tensor, Tensor, int]:
    """Tokens of prompt and response `[B, S]`, which of them are attended to, and the width of the response."""
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    attended = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    return ids, attended, inputs["completion_ids"].shape[1]


def _let_head_return_squares(trainer: Any) -> None:
    """Put a head around the model's that returns the sum of squared probabilities, too."""
    from trl.trainer.utils import add_fused_lm_head

    model = trainer.model.get_base_model() if hasattr(trainer.model, "get_base_model") else trainer.model
    add_fused_lm_head(
        model,
        temperature=trainer.temperature,
        cast_lm_head_to_fp32=trainer.args.cast_lm_head_to_fp32,
        outputs=("log_probs", "entropy", "log_sum_sq_probs"),
    )


@contextmanager
def _evaluating(model: Any) -> Iterator[Any]:
    """Without dropout: the ratio to what was sampled must not contain its noise."""
    training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(training)


@contextmanager
def _outputs_of(model: Any) -> Iterator[list[Any]]:
    """Everything the model returns inside the block."""
    outputs: list[Any] = []
    handle = model.register_forward_hook(lambda _module, _arguments, output: outputs.append(output))
    try:
        yield outputs
    finally:
        handle.remove()
