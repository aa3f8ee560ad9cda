"""What a configuration of verl cannot carry out exactly: said before anything is started, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.locality import PROXY, Locality, locality_of, of_the_learner
from vcpo_bench.adapters.verl.expression import PREFIX, names_method, read_loss_mode
from vcpo_bench.adapters.verl.names import METHOD_MODES, MONITOR_MODES, SAMPLER
from vcpo_bench.adapters.verl.policy_loss import HOOK
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method

ENGINES = ("fsdp", "fsdp2")
"""`actor.strategy` whose workers were made to take coefficients."""


def check(config: Any) -> None:
    """Refuse what would not be exact; a configuration that does not name us passes.

    Args:
        config: The whole configuration of a PPO run of verl.

    Raises:
        UsageError: With the first reason, and what to change.
    """
    loss_mode = config.actor_rollout_ref.actor.policy_loss.loss_mode
    mode = config.trainer.v1.trainer_mode if config.trainer.use_v1 else None
    for reason in _of_modes(config, mode, names_method(loss_mode)):
        raise UsageError(f"verl: {reason}")
    if not names_method(loss_mode):
        return
    method = read_loss_mode(loss_mode)
    if mode in METHOD_MODES:
        _raise_first(method, _of_trainer(config, method))
    else:
        _raise_first(method, reasons_against(method, HOOK))
        _raise_first(method, _of_policy_loss(config))


def uses_lag(config: Any) -> bool:
    """Whether our sampler is the configured one."""
    chosen = config.trainer.v1.sampler.get("custom_sampler") or {}
    return (chosen.get("path"), chosen.get("name")) == SAMPLER


def bypasses(config: Any) -> bool:
    """Whether verl takes the rollout's log-probabilities for those of its anchor."""
    return bool((config.algorithm.get("rollout_correction") or {}).get("bypass_mode", False))


def _raise_first(method: Method, reasons: Iterator[str]) -> None:
    for reason in reasons:
        raise UsageError(f"{method.canonical} in verl: {reason}")


def _of_modes(config: Any, mode: str | None, named: bool) -> Iterator[str]:
    if mode in METHOD_MODES and not named:
        yield (
            f"trainer_mode={mode} needs a method; set "
            f'actor_rollout_ref.actor.policy_loss.loss_mode="{PREFIX}vespo", or use trainer_mode=vcpo_bench_monitor'
        )
    ours = mode in METHOD_MODES or mode in MONITOR_MODES
    if ours and not config.actor_rollout_ref.rollout.calculate_log_probs:
        yield _unreported(f"trainer_mode={mode}")
    if uses_lag(config) and (config.algorithm.get("filter_groups") or {}).get("enable"):
        yield "FifoLag hands out what waits longest and cannot filter it; set algorithm.filter_groups.enable=False"


def _unreported(what: str) -> str:
    return (
        f"{what} needs the log-probabilities of the policy that sampled; set "
        "actor_rollout_ref.rollout.calculate_log_probs=True"
    )


def _of_policy_loss(config: Any) -> Iterator[str]:
    if not config.trainer.use_v1:
        yield "the legacy trainer puts its own loss in place of loss_mode in bypass mode; set trainer.use_v1=True"
    if not bypasses(config):
        yield (
            "outside bypass mode verl hands over the ratio to its anchor, the policy at the start of the step, in "
            "which staleness is invisible; set algorithm.rollout_correction.bypass_mode=True, or "
            "trainer.v1.trainer_mode=vcpo_bench"
        )
    if not config.actor_rollout_ref.rollout.calculate_log_probs:
        yield _unreported("it")
    yield from _of_rollout_correction(config)
    yield from _of_sampling(config)


def _of_rollout_correction(config: Any) -> Iterator[str]:
    correction = config.algorithm.get("rollout_correction") or {}
    for name in ("rollout_is", "rollout_rs"):
        if correction.get(name):
            yield (
                f"algorithm.rollout_correction.{name} belongs to the loss it replaces; set it to null and name a "
                "weight or a mask in the expression, for example +tis(cap=2)"
            )


def _of_trainer(config: Any, method: Method) -> Iterator[str]:
    locality = locality_of(method)
    if bypasses(config):
        yield (
            "bypass mode does not compute the current policy's log-probabilities, which the driver needs; set "
            "algorithm.rollout_correction.bypass_mode=False (the behavior policy is the rollout's in any case)"
        )
    yield from _of_engine(config, locality)
    yield from _of_evidence(config, locality)
    yield from _of_own_loss(config, locality)
    yield from _of_rollout_correction(config)
    yield from _of_sampling(config)


def _of_engine(config: Any, locality: Locality) -> Iterator[str]:
    strategy = config.actor_rollout_ref.actor.strategy
    if strategy not in ENGINES:
        yield f"actor.strategy={strategy} averages in its own way; use {' or '.join(ENGINES)}"
    if locality.acts_on_gradient:
        yield "it compares whole gradients, and verl shards them"
    yield from of_the_learner(locality)


def _of_evidence(config: Any, locality: Locality) -> Iterator[str]:
    actor = config.actor_rollout_ref.actor
    one_update = config.data.train_batch_size <= actor.ppo_mini_batch_size and actor.ppo_epochs == 1
    if "proximal_logp" in locality.needs and one_update:
        yield (
            "it needs a proximal policy, but with one update per batch that is the current one and the ratio always 1; "
            "set actor.ppo_epochs to 2 or more or actor.ppo_mini_batch_size below data.train_batch_size, or write "
            "anchor=behavior"
        )
    if "reference_logp" in locality.needs and not actor.use_kl_loss:
        yield (
            "it needs a reference policy, which verl loads only with a KL loss; set actor.use_kl_loss=True and "
            "actor.kl_loss_coef=0"
        )
    fused = config.actor_rollout_ref.model.get("use_fused_kernels", False)
    if "sum_pi_sq" in locality.needs and fused:
        yield "fused kernels do not return probabilities, which it squares; set model.use_fused_kernels=False"
    if "score_norm_sq" in locality.needs:
        if actor.strategy != "fsdp2":
            yield f"score norms read each layer, and FSDP1 flattens them; set actor.strategy=fsdp2, or {PROXY}"
        if fused:
            yield "fused kernels hide the head, whose score norm it needs; set model.use_fused_kernels=False"
        if max(actor.ulysses_sequence_parallel_size, actor.fsdp_config.ulysses_sequence_parallel_size) > 1:
            yield f"sequence parallelism cuts a row, and a score norm needs all of it; switch it off, or {PROXY}"


def _of_sampling(config: Any) -> Iterator[str]:
    rollout = config.actor_rollout_ref.rollout
    sampled = {"top_p": rollout.top_p not in (None, 1, 1.0), "top_k": rollout.top_k not in (None, 0, -1)}
    for name in (name for name, is_set in sampled.items() if is_set):
        yield (
            f"rollout.{name} truncates what is sampled, so that the log-probabilities of the behavior policy are not "
            "those reported; switch it off"
        )


def _of_own_loss(config: Any, locality: Locality) -> Iterator[str]:
    """Settings of the loss, advantage and reward that the method replaces: ignoring them silently would be worse."""
    actor, algorithm = config.actor_rollout_ref.actor, config.algorithm
    if config.critic.enable or (config.critic.enable is None and algorithm.adv_estimator == "gae"):
        yield "its methods have no critic; set algorithm.adv_estimator=grpo (its value is not used)"
    if algorithm.use_kl_in_reward:
        yield "use_kl_in_reward changes the reward; set it to False, or add +kl(anchor=reference,beta=...)"
    if actor.use_kl_loss and actor.kl_loss_coef:
        yield "kl_loss_coef belongs to the loss it replaces; set it to 0, or add +kl(anchor=reference,beta=...)"
    if actor.entropy_coeff:
        yield "entropy_coeff belongs to the loss it replaces; set it to 0, or add +entropy(beta=...)"
    if (config.get("distillation") or {}).get("enabled"):
        yield "distillation has a loss of its own; switch it off"
