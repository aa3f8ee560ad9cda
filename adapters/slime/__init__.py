"""Row-local methods as the custom loss of slime: `--loss-type custom_loss --custom-loss-function-path` to `loss` here.

slime calls the function for every micro-batch, sums what it returns over all ranks, and divides by the number of
rollouts of the step, whether their tokens carry loss or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.row_local import bind, loss_of
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch

HOOK = Hook(trainer="slime", divisor=Divisor.ROWS, proximal=True)
SETTING = "vcpo_bench_method"
"""Name of the method expression in the file of `--custom-config-path`."""

__all__ = ["HOOK", "SETTING", "loss"]


def loss(
    args: Any, batch: Any, logits: Tensor, sum_of_sample_mean: Callable[[Tensor], Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of one micro-batch.

    Args:
        args: slime's arguments, with `vcpo_bench_method`, a method expression.
        batch: slime's micro-batch: lists with one `[T_i]` tensor per sample, `advantages`, `rollout_log_probs`,
            `log_probs`, `loss_masks`, and `unconcat_tokens`, `total_lengths`, `response_lengths`, `rollout_mask_sums`.
        logits: `[1, T, V]`.
        sum_of_sample_mean: slime's own averaging; not used.

    Raises:
        UsageError: The method would not be exact there; at the first micro-batch, hence before the first step.
    """
    from slime.backends.megatron_utils.loss import get_log_probs_and_entropy, get_rollout_top_p_logprob_kwargs

    bound = bind(_expression(args), HOOK)
    _check(args, batch)
    _, scores = get_log_probs_and_entropy(
        logits,
        args=args,
        unconcat_tokens=batch["unconcat_tokens"],
        total_lengths=batch["total_lengths"],
        response_lengths=batch["response_lengths"],
        with_entropy=False,
        **get_rollout_top_p_logprob_kwargs(args, batch),
    )
    own: Sequence[Tensor] = scores["log_probs"]
    logp = _rows(own)
    anchor = batch.get("log_probs")  # absent with one update per batch, when it is the current policy
    weighed = bound.weigh(
        logp=logp,
        behavior_logp=_rows(batch["rollout_log_probs"]),
        advantage=_rows(batch["advantages"]),
        mask=_rows(batch["loss_masks"]),
        proximal_logp=_rows(anchor) if anchor else logp,
    )
    total = loss_of(weighed, logp)
    # slime adds the metrics of all micro-batches up and divides by the number of rollouts
    reported = {
        f"vcpo_bench/{name}": torch.tensor(value * len(own), device=logits.device)
        for name, value in weighed.metrics.items()
    }
    return total, {"loss": total.detach().clone(), **reported}


def _rows(values: Sequence[Tensor]) -> Tensor:
    """`[B, T]`, zeros behind the end of a row."""
    return torch.nn.utils.rnn.pad_sequence(list(values), batch_first=True)


def _expression(args: Any) -> str:
    expression = getattr(args, SETTING, None)
    if not expression:
        raise UsageError(
            f"slime: no method; put `{SETTING}: tis+seq-mean-token-mean(empty=counted)` into the file of "
            "--custom-config-path"
        )
    return str(expression)


def _check(args: Any, batch: Any) -> None:
    """Refuse settings under which slime divides by something else, or hands over parts of rows."""
    from megatron.core import mpu

    if args.calculate_per_token_loss:
        raise UsageError(
            "slime: with --calculate-per-token-loss an empty sample counts as one token, which no method does; leave "
            "the flag out"
        )
    if mpu.get_context_parallel_world_size() > 1:
        raise UsageError("slime: context parallelism splits a row over ranks; set --context-parallel-size 1")
    if not batch.get("rollout_log_probs"):
        raise UsageError("slime: the log-probabilities of the sampling engine are missing from the batch")
    for mask, tokens in zip(batch["loss_masks"], batch["rollout_mask_sums"], strict=True):
        if int(mask.sum()) != int(tokens):
            raise UsageError(
                "slime: a rollout has several samples, and slime divides by rollouts: its custom loss cannot weigh "
                "rows that way"
            )
