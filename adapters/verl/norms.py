"""Score norms in verl's FSDP2 engine: each rank finds the norms of its own rows, in the pass that scores them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.adapters.locality import PROXY
from vcpo_bench.adapters.verl.names import SCORE_NORMS
from vcpo_bench.bench.score_norms import InexactError, ScoreNorms
from vcpo_bench.bench.score_norms.collect import RecordedForward
from vcpo_bench.errors import UsageError


class ShardedScoreNorms(ScoreNorms):
    """Of a model under FSDP2, made while its weights are gathered.

    FSDP2 gathers a layer's weights for the passes and puts the same objects into the model each time, so that what was
    inspected stays valid. Only the checks of a first batch need all weights at once.
    """

    @property
    def needs_whole(self) -> bool:
        """Whether the next batch must find all weights gathered."""
        return not self._checked or not self._batched or bool(self._fallbacks)

    def _trainable_parameters(self) -> list[object]:
        """Names: sharded weights are other objects than gathered ones."""
        return [name for name, parameter in self._model.named_parameters() if parameter.requires_grad]

    def _check(self, recorded: RecordedForward) -> bool:
        if any(hasattr(parameter, "placements") for parameter in self._model.parameters()):
            raise InexactError("a batch uses other layers than those before it")
        return super()._check(recorded)


class ScoringWithNorms:
    """Stands in for `infer_batch` of an engine; where a batch asks for them, it returns `score_norm_sq`, too.

    Args:
        engine: An engine of verl with FSDP2.
    """

    def __init__(self, engine: Any) -> None:
        self._engine, self._infer, self._forward = engine, engine.infer_batch, engine.forward_step
        self._norms: ShardedScoreNorms | None = None

    def __call__(self, data: Any, loss_function: Any = None) -> Any:
        """What verl's own returns, with one squared norm per row.

        Args:
            data: Rows of this rank, in micro-batches of the size of training, whose backward pass this resembles.
            loss_function: verl's.

        Raises:
            UsageError: The model has a layer for which exact norms are impossible.
        """
        from verl.utils import tensordict_utils as tu

        if not tu.get_non_tensor_data(data, SCORE_NORMS, False):
            return self._infer(data, loss_function)
        engine = self._engine
        for name in ("micro_batch_size_per_gpu", "max_token_len_per_gpu"):
            tu.assign_non_tensor(data, **{name: getattr(engine.engine_config, name)})
        engine.module.train(engine.model_config.enable_gradient_checkpointing)  # which acts in training mode alone
        engine.forward_step = self._forward_with_norms
        try:
            with self._gathered():
                return self._infer(data, loss_function)
        except InexactError as error:
            raise UsageError(f"exact score norms are impossible for this model ({error}): {PROXY}") from None
        finally:
            engine.forward_step = self._forward

    @contextmanager
    def _gathered(self) -> Iterator[None]:
        """All weights are gathered inside, on all ranks alike, if one needs it."""
        from torch.distributed.fsdp import FSDPModule

        engine = self._engine
        needed = torch.tensor(
            float(self._norms is None or self._norms.needs_whole), device=next(engine.module.parameters()).device
        )
        torch.distributed.all_reduce(needed, group=engine.get_data_parallel_group())
        parts = [part for part in engine.module.modules() if isinstance(part, FSDPModule)] if needed else []
        for part in parts:
            part.unshard()
            part.set_reshard_after_forward(False, recurse=False)
            part.set_reshard_after_backward(False, recurse=False)
        self._norms = self._norms or ShardedScoreNorms(engine.module)
        try:
            yield
        finally:
            for part in parts:
                part.set_reshard_after_forward(engine.engine_config.reshard_after_forward, recurse=False)
                part.set_reshard_after_backward(True, recurse=False)
                part.reshard()

    @torch.enable_grad()
    def _forward_with_norms(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        assert self._norms is not None
        live: dict[str, Any] = {}

        def keep(model_output: dict[str, Any], **_: Any) -> tuple[Tensor, dict[str, Any]]:
            live.update(model_output)
            return torch.zeros(()), {}

        with self._norms.record():
            loss, output = self._forward(micro_batch, keep, forward_only)
        logp = live["log_probs"].values()
        rows, mask = rows_of(micro_batch["input_ids"], micro_batch["response_mask"], logp.device)
        squared = self._norms.squared_norms(logp, mask, retain_graph=True, segments=rows)
        self._norms.release()
        output["model_output"]["score_norm_sq"] = torch.nested.as_nested_tensor(
            list(squared.float()[:, None]), layout=torch.jagged
        )
        return loss, output


def rows_of(tokens: Any, response_mask: Any, device: torch.device) -> tuple[list[Tensor], Tensor]:
    """The row of each place, packed `[N]` and padded `[B, S]` (-1 at padding), and where a loss is carried `[N]`.

    Args:
        tokens: Nested, prompts and responses; place t has the log-probability of token t + 1.
        response_mask: Nested, of the responses.
        device: Of the result.
    """
    lengths, answers = tokens.offsets().diff(), response_mask.offsets().diff()
    numbers = torch.arange(len(lengths), device=lengths.device)
    packed = numbers.repeat_interleave(lengths)
    inside = torch.arange(int(lengths.max()), device=lengths.device) < lengths[:, None]
    padded = torch.where(inside, numbers[:, None], -1)
    mask = torch.zeros(len(packed), dtype=torch.bool, device=lengths.device)
    last = tokens.offsets()[1:] - 1
    starts = (last - answers).repeat_interleave(answers)
    places = torch.arange(len(starts), device=starts.device) - (response_mask.offsets()[:-1]).repeat_interleave(answers)
    mask[starts + places] = response_mask.values().bool()
    return [packed.to(device), padded.to(device)], mask.to(device)
