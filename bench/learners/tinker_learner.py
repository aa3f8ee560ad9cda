"""tinker: a server that speaks the Tinker API trains and samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from vcpo_bench.bench.learners.catalog import LearnerJob, LearnerKind
from vcpo_bench.bench.learners.tinker_api.service import URL_VARIABLE, Service, server_address
from vcpo_bench.bench.optimizers.adamw import AdamW
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.bench.regimes.regime import ROUNDINGS, Regime
from vcpo_bench.bench.samplers.catalog import Sampler
from vcpo_bench.bench.samplers.tinker_sampler import TinkerSampler
from vcpo_bench.bench.samplers.torch_sampler import TorchSampler
from vcpo_bench.bench.tasks import Task
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method
from vcpo_bench.methods.core.interfaces import Regularizer
from vcpo_bench.naming.parameters import choice, integer

_SCORE_NORMS = (
    "score norms (OPOB), which a Tinker server does not send; use a baseline without them, such as "
    "vcpo(baseline=group), or train with --learner torch"
)
_LACKING = {
    "score_norm_sq": _SCORE_NORMS,
    "entropy": "the entropy of the policy, and a Tinker server sends log-probabilities of the drawn tokens only",
    "sum_pi_sq": "the whole distribution, and a Tinker server sends log-probabilities of the drawn tokens only",
    "reference_logp": "a reference policy, which is not kept on the server; drop that part of the method",
    "parameter_distance": "the weights, which are on the server; drop that part of the method",
    "update_norm": "the weights, which are on the server; drop that part of the method",
}
"""Evidence that cannot be had there, as the end of a sentence."""
_NOT_OURS = {
    "lora": "give the rank as tinker(rank=N)",
    "dtype": "the server decides it",
    "micro_tokens": "the server cuts its batches itself",
    "checkpointing": "the server decides it",
    "device": "the server computes",
    "shards": "the server spreads the model over its GPUs",
}
"""Settings of the learner in this process, and what holds instead."""


@dataclass(frozen=True, kw_only=True)
class TinkerLearner(LearnerKind):
    """LoRA adapters on a server that speaks the Tinker API: one `forward`, one `forward_backward` and one `optim_step`
    per update, and the weights are published before every sampling.

    Attributes:
        rank: Rank of the adapters.
        reduction: What the server does with the losses of a batch. `mean`: the mean over rows of the mean over
            positions (SkyRL's JAX backend); `sum`: nothing is divided (its FSDP and Megatron backends).
    """

    name = "tinker"
    summary = "a server that speaks the Tinker API (--url) trains LoRA adapters, and samples"
    bare_value = False
    url_variable = URL_VARIABLE
    served = True
    rank: int = integer(32, minimum=1)
    reduction: str = choice("mean", "sum")

    def check_installed(self) -> None:
        """See `LearnerKind.check_installed`."""
        server_address(os.environ.get(URL_VARIABLE, ""))

    def check(self, job: LearnerJob) -> None:
        """See `LearnerKind.check`."""
        for reason in (*_about_method(job.method), *_about_regime(job.regime), *_about_settings(job)):
            raise UsageError(reason)

    def sampler_for(self, sampler: Sampler) -> Sampler:
        """See `LearnerKind.sampler_for`: the server, which alone has the weights."""
        if sampler not in (TorchSampler(), TinkerSampler()):
            raise UsageError(f"--sampler {sampler.text()}: the server of --learner tinker samples; drop --sampler")
        return TinkerSampler()

    def open_policy(self, job: LearnerJob, task: Task, folder: Path) -> Policy:
        """See `LearnerKind.open_policy`."""
        with hf_packages():
            from transformers import AutoConfig

            from vcpo_bench.bench.policies.hf.loading import check_context
            from vcpo_bench.bench.tasks.text.bound import BoundTask
        from vcpo_bench.bench.learners.tinker_api.policy import ServedModel, TinkerPolicy

        assert isinstance(task, BoundTask)
        assert isinstance(job.optimizer, AdamW)
        if task.environment is not None:
            raise UsageError(f"--task {task.canonical}: a Tinker server draws whole responses, not turns")
        check_context(SimpleNamespace(config=AutoConfig.from_pretrained(folder, local_files_only=True)), task)
        service = Service(os.environ.get(URL_VARIABLE, ""))
        decay = float(job.changed.get("weight_decay", 0.0))
        base = base_model(service.models(), folder.name, service.url)
        return TinkerPolicy(service, ServedModel(base, task.pad, self.rank, self.reduction, job.optimizer, decay))


def base_model(offered: list[str], wanted: str, url: str) -> str:
    """What a server calls a model.

    Args:
        offered: Names or folders of the models it can train.
        wanted: Name of the model's folder here.
        url: Its address, for the message.

    Raises:
        UsageError: None or several of them have that name, and there is more than one.
    """
    found = [name for name in offered if name.rstrip("/").rpartition("/")[2] == wanted]
    found = found or (offered if len(offered) == 1 else [])
    if len(found) != 1:
        raise UsageError(f"--url {url}: trains {', '.join(offered) or 'nothing'}, not {wanted}; name one with --model")
    return found[0]


def _about_method(method: Method) -> Iterator[str]:
    for name, lack in _LACKING.items():
        if name in method.needs | method.measures_drift:
            yield f"{method.canonical} --learner tinker: needs {lack}"
    if method.combine is not None or method.compensate is not None:
        yield f"{method.canonical} --learner tinker: changes the gradient, which is on the server"
    if any(type(part).entropy is not Regularizer.entropy for part in method.parts.regularizers):
        yield f"{method.canonical} --learner tinker: an entropy bonus has no counterpart in the losses of the server"


def _about_regime(regime: Regime) -> Iterator[str]:
    start = f"--regime {regime.text()} --learner tinker: "
    if regime.splits_responses:
        yield start + "a server cannot stop within a response; use fifo, or --learner torch"
    if regime.needs_process:
        yield start + "the server samples, so there is no sampler process; use clock=virtual"
    if regime.truncates:
        yield start + "the server scores whole distributions; drop top_p and top_k"
    if regime.publish_every > 1:
        yield start + "a server trains with the weights it samples from, so that older ones cannot be sampled; use 1"
    if regime.engine_noise in ROUNDINGS:
        yield start + "the weights are on the server, so they cannot be rounded; give a standard deviation"


def _about_settings(job: LearnerJob) -> Iterator[str]:
    for name, instead in _NOT_OURS.items():
        if name in job.changed:
            yield f"--{name.replace('_', '-')} --learner tinker: {instead}; drop the flag"
    if not isinstance(job.optimizer, AdamW) or job.optimizer.reset:
        yield f"--optimizer {job.optimizer.text()} --learner tinker: the server has AdamW without resets"
    if job.changed.get("record") == "full":
        yield "--record full --learner tinker: score norms cannot be recorded there; use --record diagnostics"
