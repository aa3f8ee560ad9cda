"""Row-local methods as policy losses of verl, one micro-batch at a time.

verl keeps its own advantage (`algorithm.adv_estimator`) and its own averaging (`loss_agg_mode`). The method decides
what each token's advantage is multiplied with. That is exact only for methods that need one row at a time; the others
are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vcpo_bench.adapters.hook import Divisor, Hook
from vcpo_bench.adapters.row_local import bind
from vcpo_bench.adapters.verl.expression import names_method, read_loss_mode
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods import Method

LOGGED = "vcpo_bench/"
"""Prefix of what is added to verl's log; verl puts its own `actor/` before it."""
HOOK = Hook(trainer="a policy loss of verl", divisor=Divisor.SETTING, advice="use trainer.v1.trainer_mode=vcpo_bench")

PolicyLoss = Callable[..., tuple[Tensor, dict[str, float]]]


class RowLocalLoss:
    """A method as a policy loss with verl's signature.

    Raises:
        UsageError: The method needs more than one row, or evidence that verl does not hand to its losses.
    """

    def __init__(self, method: Method, aggregate: Callable[..., Tensor]) -> None:
        self._bound = bind(method, HOOK)
        self._aggregate = aggregate
        self._named = next((part.name for part in method.extras if part.slot == "aggregation"), None)

    def __call__(
        self,
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss of one micro-batch and what goes into the log.

        Args:
            old_log_prob: `[B, T]` under the policy that sampled (bypass mode).
            log_prob: `[B, T]` under the current policy, with gradient.
            advantages: `[B, T]`.
            response_mask: `[B, T]`, true where a token carries loss.
            loss_agg_mode: verl's averaging.
            config: verl's `ActorConfig`; its `global_batch_info` says what the averages are over.
            rollout_is_weights: Must be absent: the method has its own weights.

        Raises:
            UsageError: verl would weight twice, or average in another way than the expression says.
        """
        self._check(loss_agg_mode, rollout_is_weights)
        mask = response_mask.bool()
        coefficients, metrics = self._bound.weigh(
            logp=log_prob, behavior_logp=old_log_prob, advantage=advantages, mask=mask
        )
        if metrics["not_finite"]:  # a gradient that is not a number makes verl leave the optimizer step out
            coefficients = torch.full_like(coefficients, torch.nan)
        losses = torch.where(mask, -coefficients.to(log_prob.dtype) * log_prob, 0.0)
        spread = {} if config is None else dict(config.global_batch_info)
        loss = self._aggregate(loss_mat=losses, loss_mask=mask, loss_agg_mode=loss_agg_mode, **spread)
        return loss, {f"{LOGGED}{name}": value for name, value in metrics.items()}

    def _check(self, loss_agg_mode: str, rollout_is_weights: Tensor | None) -> None:
        if rollout_is_weights is not None:
            raise UsageError(
                "rollout_correction.rollout_is weights the loss that the method replaces; set it to null and name the "
                "weight in the expression, for example vcpo_bench:tis(cap=2)"
            )
        if self._named not in (None, loss_agg_mode):
            raise UsageError(
                f"the expression says {self._named} and actor.loss_agg_mode is {loss_agg_mode}: verl averages, set "
                f"actor.loss_agg_mode={self._named}"
            )


class Registry(dict[str, PolicyLoss]):
    """verl's policy losses, and one for each expression behind our prefix, made when it is first asked for.

    Args:
        known: What verl has registered.
        aggregate: `agg_loss` of verl.
        works: Whether what checks the configuration is there; where it is not, no expression is known.
    """

    def __init__(
        self, known: dict[str, PolicyLoss], aggregate: Callable[..., Tensor], works: Callable[[], bool]
    ) -> None:
        super().__init__(known)
        self._aggregate, self._works = aggregate, works

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (names_method(name) and self._works())

    def __missing__(self, name: str) -> PolicyLoss:
        if name not in self:
            raise KeyError(name)
        self[name] = RowLocalLoss(read_loss_mode(name), self._aggregate)
        return self[name]


def install(core_algos: Any, works: Callable[[], bool]) -> None:
    """Let verl's registry know our prefix.

    Args:
        core_algos: The module `verl.trainer.ppo.core_algos`.
        works: As for `Registry`.
    """
    if not isinstance(core_algos.POLICY_LOSS_REGISTRY, Registry):
        core_algos.POLICY_LOSS_REGISTRY = Registry(core_algos.POLICY_LOSS_REGISTRY, core_algos.agg_loss, works)
