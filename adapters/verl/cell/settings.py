"""A cell as the configuration of verl."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.verl.cell.prompts import HELD_OUT, TEMPLATE, TRAIN
from vcpo_bench.adapters.verl.expression import PREFIX
from vcpo_bench.adapters.verl.names import SAMPLER
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.trainers.job import TrainerJob
from vcpo_bench.bench.training.learner_step import GRAD_CLIP

METRICS, CHECKPOINTS, STEP_FOLDER = "metrics.jsonl", "verl", "global_step_"
"""In the folder of the job: what verl's file logger writes, and its checkpoints."""
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
TYPES = {"float32": "fp32", "bfloat16": "bf16"}


def settings_of(job: TrainerJob, lengths: tuple[int, int], folder: Path) -> dict[str, Any]:
    """Every setting that differs from verl's defaults or that a result rests on.

    Args:
        job: What to train.
        lengths: Longest prompt and longest response in tokens.
        folder: Folder of the job, as an absolute path that is the same on every node.
    """
    config = CellConfig.recorded(job.config)
    return {
        **_data(config, lengths, folder),
        **_model(config, job.model, sum(lengths)),
        **_optimizer(config),
        **_rollout(config),
        **_method(config),
        **_lag(config),
        **_run(config, job, folder),
    }


def overrides(settings: Mapping[str, Any]) -> list[str]:
    """The settings as arguments of verl's command line."""
    return [f"{name}={_written(value)}" for name, value in settings.items()]


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return '"' + value.replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_written(one)}" for name, one in value.items()) + "}"
    return repr(value)


def _data(config: CellConfig, lengths: tuple[int, int], folder: Path) -> dict[str, Any]:
    return {
        "data.train_files": [str(folder / TRAIN)],
        "data.val_files": [str(folder / HELD_OUT)],
        "data.train_batch_size": config.prompts,
        "data.max_prompt_length": lengths[0],
        "data.max_response_length": lengths[1],
        "data.shuffle": False,  # the order of the rows is that of the cell's batches
        "reward.custom_reward_function.path": "pkg://vcpo_bench.adapters.verl.cell.prompts",
        "reward.custom_reward_function.name": "score",
    }


def _model(config: CellConfig, model: str, positions: int) -> dict[str, Any]:
    trainer: Any = config.parts.trainer
    kind = TYPES[config.dtype]
    rows = config.prompts * config.responses // trainer.gpus
    made: dict[str, Any] = {
        "actor_rollout_ref.model.path": model,
        "actor_rollout_ref.model.custom_chat_template": TEMPLATE,
        "actor_rollout_ref.model.enable_gradient_checkpointing": config.checkpointing,
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.ppo_mini_batch_size": config.prompts,
        f"{ACTOR}.use_dynamic_bsz": bool(config.micro_tokens),
        f"+{ACTOR}.fsdp_config.mixed_precision": {"param_dtype": kind, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        f"{ROLLOUT}.dtype": config.dtype,
    }
    if config.micro_tokens:
        return made | {f"{ACTOR}.ppo_max_token_len_per_gpu": max(config.micro_tokens, positions)}
    return made | {
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": rows,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": rows,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": rows,
    }


def _optimizer(config: CellConfig) -> dict[str, Any]:
    adamw: Any = config.parts.optimizer
    values = {
        "lr": config.lr,
        "lr_warmup_steps": config.lr_warmup,
        "lr_scheduler_type": "cosine",  # with this floor it is constant, and only it begins with step 1 of the warmup
        "min_lr_ratio": 1.0,
        "zero_indexed_step": False,
        "betas": [adamw.beta1, adamw.beta2],
        "override_optimizer_config": {"eps": adamw.eps},
        "weight_decay": config.weight_decay,
        "clip_grad": GRAD_CLIP,
    }
    return {f"{ACTOR}.optim.{name}": value for name, value in values.items()}


def _rollout(config: CellConfig) -> dict[str, Any]:
    values = {
        "name": "vllm",
        "n": config.responses,
        "temperature": 1.0,
        "tensor_model_parallel_size": 1,
        "calculate_log_probs": True,
        "seed": config.seed,
        "val_kwargs.do_sample": True,
        "val_kwargs.temperature": 1.0,
    }
    return {f"{ROLLOUT}.{name}": value for name, value in values.items()}


def _method(config: CellConfig) -> dict[str, Any]:
    method = config.parts.method
    made: dict[str, Any] = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.rollout_correction.rollout_is": None,  # the method corrects
        "algorithm.rollout_correction.rollout_rs": None,
        "algorithm.rollout_correction.bypass_mode": in_loss(config),
        f"{ACTOR}.policy_loss.loss_mode": f"{PREFIX}{method.canonical}",
    }
    if in_loss(config):
        made |= {f"{ACTOR}.loss_agg_mode": method.parts.aggregation.name, f"{ACTOR}.calculate_entropy": True}
    elif "reference_logp" in locality_of(method).needs:
        made |= {f"{ACTOR}.use_kl_loss": True, f"{ACTOR}.kl_loss_coef": 0.0}  # else verl loads no reference
    return made


def in_loss(config: CellConfig) -> bool:
    """Whether the method is a policy loss in verl's own trainer, which only `separate_async` asks for."""
    return config.parts.trainer.lag == "separate" and config.staleness > 0  # type: ignore[attr-defined]


def _lag(config: CellConfig) -> dict[str, Any]:
    """How old the data are: exact, or at most `staleness` updates, with as many batches on their way."""
    trainer: Any = config.parts.trainer
    mode, lag = "trainer.v1.trainer_mode", config.staleness
    if not lag:
        return {mode: "vcpo_bench"}
    if trainer.lag == "exact":
        names = dict(zip(("path", "name"), SAMPLER, strict=True))
        custom = {f"trainer.v1.sampler.custom_sampler.{name}": value for name, value in names.items()}
        return {mode: "vcpo_bench", **custom, "+trainer.v1.sampler.sampler_kwargs.lag": lag}
    bounded = {
        "trainer.v1.sampler.max_off_policy_threshold": lag + 1,  # verl counts the update that consumes
        "trainer.v1.sampler.max_off_policy_strategy": "wait",
    }
    if trainer.lag == "colocate":
        waiting = {"trainer.v1.colocate_async.num_warmup_batches": lag}
        return {mode: "vcpo_bench_colocate_async", **waiting, **bounded}
    return {
        mode: "separate_async",
        "trainer.v1.separate_async.num_warmup_batches": lag,
        "trainer.v1.separate_async.parameter_sync_step": 1,  # a version of the weights is one update
        "actor_rollout_ref.hybrid_engine": False,
        f"{ROLLOUT}.nnodes": 1,
        f"{ROLLOUT}.n_gpus_per_node": trainer.rollout_gpus,
        f"{ROLLOUT}.checkpoint_engine.backend": "nccl",
        **bounded,
    }


def _run(config: CellConfig, job: TrainerJob, folder: Path) -> dict[str, Any]:
    trainer: Any = config.parts.trainer
    values = {
        "use_v1": True,
        "device": "cuda",
        "nnodes": 1,
        "n_gpus_per_node": trainer.gpus,
        "total_epochs": 1,
        "total_training_steps": job.updates,
        "test_freq": config.eval_every,
        "val_before_train": not job.resume,
        "save_freq": job.keep_every or config.eval_every,
        "default_local_dir": str(folder / CHECKPOINTS),
        "resume_mode": "resume_path" if job.resume else "disable",
        "resume_from_path": _resumed(job.resume),
        "project_name": "vcpo_bench",
        "experiment_name": job.key,
        "logger": ["console", "file"],
    }
    variables = "+ray_kwargs.ray_init.runtime_env.env_vars"
    named = {f"trainer.{name}": value for name, value in values.items()}
    return {**named, variables: {"VERL_FILE_LOGGER_PATH": str(folder / METRICS)}}


def _resumed(checkpoint: str) -> str | None:
    if not checkpoint:
        return None
    (found,) = Path(checkpoint).glob(f"{STEP_FOLDER}*")
    return str(found)
