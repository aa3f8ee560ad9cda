"""What a trainer's configuration cannot carry out exactly: said before the first step, with the reason."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from vcpo_bench.adapters.locality import PROXY, Locality, locality_of, of_the_learner
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method
from vcpo_bench.methods.core.reach import Scope


def check(trainer: Any, method: Method, lag: int) -> None:
    """Refuse what would not be exact.

    Args:
        trainer: A `GRPOTrainer` with its configuration settled.
        method: The method.
        lag: The k of `fifo(k)`.

    Raises:
        UsageError: With the first reason, and what to change.
    """
    locality = locality_of(method)
    for rules in (_of_parallelism, _of_batches, _of_lag, _of_evidence, _of_own_loss, _of_replaced_settings):
        for reason in rules(trainer, locality, lag):
            raise UsageError(f"{method.canonical} in TRL: {reason}")
    _warn_of_sampling(trainer)


def _of_parallelism(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if trainer.args.n_gpu > 1:
        yield "several GPUs in one process (DataParallel) split a micro-batch; start with torchrun or accelerate launch"
    if max(trainer.get_sp_size(), trainer.get_cp_size(), trainer.get_tp_size()) > 1:
        yield "tensor, context and sequence parallelism give several ranks the same rows; use data parallelism"
    if sharded and "score_norm_sq" in locality.needs:
        yield f"score norms need whole weights, and these are sharded: {PROXY}"
    if trainer.is_deepspeed_enabled and (locality.scales_step or locality.acts_on_gradient):
        yield "DeepSpeed steps inside its own engine, where the step cannot be scaled or changed; use DDP or FSDP"
    if trainer.is_fsdp_enabled and locality.acts_on_gradient:
        yield "it compares whole gradients, and these are sharded; use DDP"
    if trainer.args.fp16 and locality.acts_on_gradient:
        yield "it compares gradients, and those of float16 training are scaled; use bf16=True"


def _of_batches(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    args = trainer.args
    micro, steps = args.gradient_accumulation_steps, args.steps_per_generation
    if steps % micro:
        yield (
            f"steps_per_generation={steps} is not a multiple of gradient_accumulation_steps={micro}, so that an "
            f"optimizer step would start before all its responses are sampled; set steps_per_generation={micro}"
        )
    rows = args.per_device_train_batch_size * micro
    if steps > micro and rows % trainer.num_generations and max(locality.loss, locality.baseline) >= Scope.GROUP:
        yield (
            f"it needs {Scope.GROUP.phrase}, and one generation feeds {steps // micro} optimizer steps of {rows} rows "
            f"per rank, which do not hold whole groups of {trainer.num_generations}; set "
            f"steps_per_generation={micro}, or make the rows a multiple of num_generations"
        )


def _of_lag(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    args = trainer.args
    if lag and (trainer.num_iterations > 1 or args.steps_per_generation != args.gradient_accumulation_steps):
        yield (
            "an exact lag needs one optimizer step per generation; set num_iterations=1 and "
            f"steps_per_generation={args.gradient_accumulation_steps}"
        )
    if lag and not hasattr(trainer.train_dataset, "__getitem__"):
        yield "lag needs to read ahead in the training data; use a data set with an index, not an iterable one"


def _of_evidence(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    updates = trainer.num_iterations * trainer.args.steps_per_generation // trainer.args.gradient_accumulation_steps
    if "proximal_logp" in locality.needs and updates == 1:
        yield (
            "it needs a proximal policy, but with one update per batch that is the current one and the ratio always 1; "
            "set num_iterations to 2 or more, or write anchor=behavior"
        )
    if "reference_logp" in locality.needs and not trainer.beta:
        yield "it needs a reference policy, which TRL loads only if beta is not 0; set beta (its value is not used)"
    yield from of_the_learner(locality)
    if "score_norm_sq" in locality.needs and getattr(trainer, "_is_vlm", False):
        yield f"score norms are exact for text models only: {PROXY}"


def _of_own_loss(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    """Settings of the loss that the method replaces: ignoring them silently would be worse."""
    if trainer.beta and "reference_logp" not in locality.needs:
        yield f"beta={trainer.beta} belongs to the loss it replaces; set beta=0, or add +kl(anchor=reference,beta=...)"
    if trainer.args.entropy_coef or trainer.args.use_adaptive_entropy:
        yield "entropy_coef and use_adaptive_entropy belong to the loss it replaces; add +entropy(beta=...) instead"
    if trainer.top_entropy_quantile < 1.0 or trainer.off_policy_mask_threshold is not None:
        yield (
            "top_entropy_quantile and off_policy_mask_threshold belong to the loss it replaces; add a mask such as "
            "+opsm instead"
        )
    if trainer.multi_objective_aggregation != "sum_then_normalize":
        yield "rewards must be one number per response; set multi_objective_aggregation='sum_then_normalize'"
    if trainer.aux_loss_enabled:
        yield "the load-balancing loss of a mixture of experts is not part of it; set router_aux_loss_coef=0.0"


REPLACED = {
    "loss_type": "name it as the method, and its averaging with +, such as cispo+token-mean",
    "scale_rewards": "add +batch-std for 'batch' or +group-mean for 'none'",
    "importance_sampling_level": "write gspo(low=...,high=...) for 'sequence'",
    "epsilon": "write it into the method, such as clip(low=...,high=...)",
    "epsilon_high": "write it into the method, such as clip(high=...) or cispo(cap=...)",
    "delta": "write two-sided(delta=...)",
    "sapo_temperature_neg": "write sapo(tau_neg=...)",
    "sapo_temperature_pos": "write sapo(tau_pos=...)",
    **dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"), "write vespo(...)"),
    "vllm_importance_sampling_mode": (
        "name the correction in the method: tis is 'sequence_truncate', token-tis 'token_truncate', mis "
        "'sequence_mask', icepop 'token_mask'"
    ),
    "vllm_importance_sampling_clip_max": "write cap=... into the method's correction, such as token-tis(cap=...)",
    "vllm_importance_sampling_clip_min": "write low=... into the method's correction, such as token-tis(low=...)",
    "use_bias_correction_kl": "write +kl(anchor=reference,weight=...)",
}
"""Settings of the loss, the advantage and the correction that the method replaces, and what to write instead."""


def _of_replaced_settings(trainer: Any, locality: Locality, lag: int) -> Iterator[str]:
    """Settings without any effect, where somebody has set them."""
    if trainer.use_vllm and not trainer.args.vllm_importance_sampling_correction:
        yield (
            "with vllm_importance_sampling_correction=False TRL does not check that vLLM reports the log-probabilities "
            "it samples from, which every ratio is made of; leave it True: TRL's own weights are not used"
        )
    for name, default in defaults().items():
        if name in REPLACED and getattr(trainer.args, name, default) != default:
            yield f"{name}={getattr(trainer.args, name)!r} belongs to the loss it replaces; {REPLACED[name]}"


def defaults() -> dict[str, Any]:
    """Defaults of TRL's settings, those of its own class, whatever a subclass makes of them."""
    from trl import GRPOConfig

    return {field.name: field.default for field in fields(GRPOConfig)}


def _warn_of_sampling(trainer: Any) -> None:
    changed = {
        "top_p": trainer.top_p not in (None, 1.0),
        "top_k": trainer.top_k not in (None, 0, -1),
        "min_p": trainer.min_p not in (None, 0.0),
        "repetition_penalty": trainer.repetition_penalty not in (None, 1.0),
    }
    names = [name for name, is_set in changed.items() if is_set]
    if names:
        why = (
            "vLLM reports log-probabilities of the distribution that it cut, and TRL scores the whole one"
            if trainer.use_vllm
            else "responses are not drawn from the distribution whose log-probabilities are used as those of the "
            "behavior policy"
        )
        warnings.warn(f"{', '.join(names)}: {why}, so importance weights are biased", stacklevel=4)
