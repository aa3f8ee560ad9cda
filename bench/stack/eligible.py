"""Which cells can share a stack, and why others cannot."""

from __future__ import annotations

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.regimes.regime import ROUNDINGS
from vcpo_bench.bench.tasks import TokenTask
from vcpo_bench.bench.trainers.catalog import OutsideTrainer


def why_not_stacked(config: CellConfig) -> str:
    """Why a cell cannot be stacked, in a few words; empty: it can."""
    if config.model:
        return "language models are not stacked"
    if isinstance(config.parts.trainer, OutsideTrainer):
        return "its trainer trains in processes of its own"
    if not config.parts.policy.stacked:
        return f"the policy {config.parts.policy.name} has no stacked form"
    if isinstance(task := config.parts.task, TokenTask) and task.environment is not None:
        return "tasks with an environment are not stacked"
    regime = config.parts.regime
    if not regime.whole_batches:
        return f"the regime {regime.name} does not draw whole batches as planned"
    if regime.publish_every > 1 or regime.engine_noise in ROUNDINGS:
        return "the sampler holds other weights than the learner (publish_every, engine_noise)"
    if regime.truncates:
        return "the sampler truncates distributions (top_p, top_k)"
    if config.sampler != CellConfig.sampler or config.micro_tokens:
        return "it has a sampler or micro-batches of its own"
    if config.device == "cuda" and config.optimizer != CellConfig.optimizer:
        return f"on a GPU the optimizer of a stack is {CellConfig.optimizer} with its defaults"
    if config.parts.method.measures_drift:
        return "its method measures how far the weights have moved"
    if "vocabulary_logp" in config.parts.method.needs:
        return "its method reads whole distributions"
    if "void_turn" in config.parts.method.needs:
        return "its method looks at turns"
    if config.record == "full" and not _norms(config):
        return "record level full measures score norms in a pass of their own"
    return ""


def shape_of(config: CellConfig) -> tuple[object, ...]:
    """Cells for which this is equal fit into one stack."""
    return (config.task, config.prompts, config.responses, config.eval_prompts, config.device, _norms(config))


def _norms(config: CellConfig) -> bool:
    """Whether its method takes score norms: its updates then go another way through the network."""
    return "score_norm_sq" in config.parts.method.needs
