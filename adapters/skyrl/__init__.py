"""Row-local methods in SkyRL's `PolicyLossRegistry`.

SkyRL divides the advantages of a mini-batch as its `loss_reduction` says, and sums what the policy losses of all
micro-batches and ranks return. The number it divided by is unknown to the loss, so methods whose coefficients are not
proportional to the advantage are refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.row_local import bind, loss_of
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor
from vcpo_bench.methods import parse_method

HOOKS = {
    "token_mean": Hook(trainer="SkyRL", divisor=Divisor.TOKENS, proximal=True, scaled_advantage=True),
    "sequence_mean": Hook(trainer="SkyRL", divisor=Divisor.ROWS, proximal=True, scaled_advantage=True),
    "seq_mean_token_sum_norm": Hook(trainer="SkyRL", divisor=Divisor.ROWS, proximal=True, scaled_advantage=True),
}
"""By `trainer.algorithm.loss_reduction`."""

__all__ = ["HOOKS", "policy_loss", "register"]


def register(method: str) -> str:
    """Register a method as a policy loss; call it before `initialize_ray`.

    Returns:
        The name for `trainer.algorithm.policy_loss_type`.

    Raises:
        UsageError: The expression is wrong, or the method is exact under no `loss_reduction`.
    """
    from skyrl.backends.skyrl_train.utils.ppo_utils import PolicyLossRegistry

    canonical = parse_method(method).canonical
    if all(any(reasons_against(parse_method(method), hook)) for hook in HOOKS.values()):
        bind(method, HOOKS["token_mean"])
    name = f"vcpo_bench:{canonical}"
    if name not in PolicyLossRegistry.list_available():
        PolicyLossRegistry.register(name, partial(policy_loss, method=canonical))
    return name


def policy_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    config: Any,
    loss_mask: Tensor | None = None,
    rollout_logprobs: Tensor | None = None,
    *,
    method: str,
) -> tuple[Tensor, dict[str, float]]:
    """SkyRL's policy loss of one micro-batch.

    Args:
        log_probs: `[B, T]`, with gradient history.
        old_log_probs: `[B, T]` under the policy at the first update on this batch.
        advantages: `[B, T]`, divided by SkyRL already.
        config: SkyRL's `AlgorithmConfig`.
        loss_mask: `[B, T]`, 1 where a token carries loss.
        rollout_logprobs: `[B, T]` as the sampling engine reported them.
        method: A method expression.

    Raises:
        UsageError: The method would not be exact there; at the first micro-batch, hence before the first step.
    """
    bound = bind(method, HOOKS[_reduction(config)])
    if rollout_logprobs is None or loss_mask is None:
        raise UsageError(
            "SkyRL: the sampling engine's log-probabilities are missing; set generator.sampling_params.logprobs=1"
        )
    weighed = bound.weigh(
        logp=log_probs,
        behavior_logp=rollout_logprobs,
        advantage=_per_row(advantages, loss_mask, config),
        mask=loss_mask > 0,
        proximal_logp=old_log_probs,
    )
    return loss_of(weighed, log_probs), {
        "clip_ratio": weighed.metrics["share_clipped"],
        **{f"vcpo_bench/{name}": value for name, value in weighed.metrics.items()},
    }


def _per_row(advantages: Tensor, loss_mask: Tensor, config: Any) -> Tensor:
    """`[B, T]` the advantage divided by nothing but the tokens, or the rows, of the mini-batch.

    What SkyRL divided by beside that, the length or the horizon, is the method's own aggregation's to say.
    """
    if config.loss_reduction == "sequence_mean":
        return advantages * loss_mask.sum(-1, keepdim=True).clamp(min=1)
    if config.loss_reduction == "seq_mean_token_sum_norm":
        return advantages * float(config.max_seq_len)
    return advantages


def _reduction(config: Any) -> str:
    """`loss_reduction`, where nothing else would change the loss."""
    reduction = str(config.loss_reduction)
    if reduction not in HOOKS:
        raise UsageError(
            f"SkyRL: loss_reduction={reduction} divides by micro-batches or prompts; use {', '.join(HOOKS)}"
        )
    correction = config.off_policy_correction
    switches = ("tis_ratio_type", "sequence_mask_metric")
    bounds = ("outlier_token_is_threshold", "token_mask_is_threshold")
    names = [*switches, *(f"{name}_{end}" for name in bounds for end in ("low", "high"))]
    for name in names:
        if getattr(correction, name) is not None:
            raise UsageError(
                f"SkyRL: off_policy_correction.{name} belongs to the loss that is replaced; leave it out and name a "
                "method such as tis or icepop"
            )
    return reduction
