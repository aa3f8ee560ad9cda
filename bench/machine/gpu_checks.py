"""Checks that need a GPU, for users who have one. The first two have passed on one; none of vLLM's has run on any."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.machine.doctor import DoctorLine
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.samplers.engines.base import Engine
from vcpo_bench.bench.samplers.vllm_engine import releases
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Responses, Rollout

TOLERANCE = 2e-3
"""Nats by which float32 log-probabilities of two devices or kernels may differ (TF32 products included)."""
TASK = "arithmetic(terms=2,largest=9)"
_PROMPTS, _RESPONSES = 4, 4


class Skip(Exception):  # noqa: N818 - not an error
    """The check cannot run here; the text says why."""


def gpu_checks() -> Iterator[DoctorLine]:
    """Run every check; a failing one does not stop the others."""
    for name, check in CHECKS.items():
        try:
            if not torch.cuda.is_available():
                raise Skip("torch finds no CUDA device")
            yield DoctorLine(name, "ok", check())
        except Skip as reason:
            yield DoctorLine(name, "skipped", str(reason))
        except Exception as error:  # drivers and engines raise errors of many kinds: each is a result
            said = str(error).strip().splitlines()
            yield DoctorLine(name, "failed", f"{type(error).__name__}: {said[-1] if said else ''}")


def small_policy() -> str:
    """The built-in tiny policy gives the same scores on both devices, and a cell trains on the GPU."""
    config = CellConfig(method="vcpo", staleness=1, seed=0, steps=2, device="cuda")
    task = open_task(config, None)
    there, here = open_policy(config, task, None, "cuda"), open_policy(config, task, None, "cpu")
    rollout, prompts = _draw(task, lambda *asked: here.sample(Draw(*asked)))
    given = Responses(prompts, rollout.responses, rollout.mask)
    with torch.no_grad():
        scores = [model.score(given).logp.cpu() for model in (there, here)]
    trainer = build_trainer(config)
    while not trainer.status:
        trainer.advance()
    trainer.close()
    return _small(float((scores[0] - scores[1]).abs().max()))


def language_model() -> str:
    """Sampler and learner of a Hugging Face model agree on the GPU, in float32 and bfloat16."""
    with tempfile.TemporaryDirectory() as folder:
        _save_model(Path(folder))
        found = []
        accuracies: tuple[tuple[Literal["float32", "bfloat16"], float], ...]
        accuracies = (("float32", TOLERANCE), ("bfloat16", 0.1))
        for dtype, limit in accuracies:
            config = _config(Path(folder), "torch", dtype)
            task = open_task(config, Path(folder))
            policy = open_policy(config, task, Path(folder), "cuda")
            rollout, prompts = _draw(task, policy.sample)
            found.append(_small(difference(policy, prompts, rollout), limit))
    return f"float32: {found[0]}; bfloat16: {found[1]}"


def vllm_in_process(device: str = "cuda") -> str:
    """An engine in this process reports the learner's log-probabilities, before and after a weight update.

    Raises:
        Skip: vLLM is not installed.
    """
    from vcpo_bench.bench.cells.opening import open_sampler

    _needs_vllm()
    with tempfile.TemporaryDirectory() as folder:
        _save_model(Path(folder))
        config = _config(Path(folder), "vllm")
        task = open_task(config, Path(folder))
        policy = open_policy(config, task, Path(folder), device)
        sampler = open_sampler(config, task, policy)
        assert sampler is not None
        try:
            return compare_across_updates(policy, task, sampler)
        finally:
            sampler.close()


def vllm_server(transfer: str, options: tuple[str, ...] = (), gpu: str = "") -> str:
    """A server reports the learner's log-probabilities, before and after a weight transfer.

    Raises:
        Skip: vLLM is not installed.
    """
    _needs_vllm()
    from vcpo_bench.bench.samplers.vllm_engine.over_http import VllmOverHttp
    from vcpo_bench.bench.samplers.vllm_engine.serve import VllmServer

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        _save_model(folder)
        config = _config(folder, "vllm-server")
        task = open_task(config, folder)
        policy: Any = open_policy(config, task, folder, "cuda")
        settings = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "256", *options)
        if transfer != "disk":
            settings += ("--weight-transfer-config", json.dumps({"backend": transfer}))
        more = {"VLLM_ALLOW_INSECURE_SERIALIZATION": "1"} | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})
        with VllmServer(folder, Path(name) / "log", settings, more) as server:
            server.wait()
            sampler = VllmOverHttp(policy, server.url, weights=transfer, pause="wait")
            try:
                return compare_across_updates(policy, task, sampler)
            finally:
                sampler.close()


def vllm_nccl() -> str:
    """The check of NCCL, which needs one GPU for the trainer and another for the server.

    Raises:
        Skip: vLLM is not installed, or there is one GPU only.
    """
    _needs_vllm()
    if torch.cuda.device_count() < 2:
        raise Skip("needs two GPUs: NCCL does not connect two processes on one")
    return vllm_server("nccl", options=_SHARED, gpu="1")


_SHARED = ("--gpu-memory-utilization", "0.3")
CHECKS: dict[str, Callable[[], str]] = {
    "built-in tiny policy": small_policy,
    "language model": language_model,
    "vLLM in process": vllm_in_process,
    "vLLM server, weights by file": lambda: vllm_server("disk", options=_SHARED),
    "vLLM server, weights by CUDA IPC": lambda: vllm_server("ipc", options=_SHARED),
    "vLLM server, weights by NCCL": vllm_nccl,
}


def compare_across_updates(policy: Policy, task: Task, sampler: Engine) -> str:
    """Push weights, sample and compare; then change the weights and repeat."""
    found = []
    for version in (0, 1):
        sampler.set_weights(policy.named_parameters(), version)
        rollout, prompts = _draw(task, sampler.generate)
        found.append(_small(difference(policy, prompts, rollout)))
        with torch.no_grad():
            for parameter in policy.trainable():
                parameter.add_(0.05 * torch.randn_like(parameter))
    return f"{found[0]}; after a weight update: {found[1]}"


def difference(policy: Policy, prompts: torch.Tensor, rollout: Rollout) -> float:
    """Largest difference between the log-probabilities of a sampler and of the policy, in nats."""
    with torch.no_grad():
        scores = policy.score(Responses(prompts, rollout.responses, rollout.mask)).logp.cpu()
    return float((scores - rollout.logp)[rollout.mask].abs().max())


def _needs_vllm() -> None:
    if releases.installed() is None:
        raise Skip("vLLM is not installed")


def _draw(task: Task, draw: Callable[..., Rollout]) -> tuple[Rollout, torch.Tensor]:
    prompts = task.training_prompts(0, 0, _PROMPTS)
    noise = torch.from_numpy(uniforms(0, "doctor", 0, _PROMPTS * _RESPONSES, task.max_response))
    return draw(prompts, noise, task.eos), prompts


def _small(found: float, limit: float = TOLERANCE) -> str:
    if not found <= limit:
        raise RuntimeError(f"log-probabilities differ by up to {found:.1e} nats, more than {limit:g}")
    return f"log-probabilities within {found:.1e} nats"


def _save_model(folder: Path) -> None:
    """Save a random model with untied embeddings."""
    try:
        from vcpo_bench.bench.policies.hf.create import new_model
    except ImportError as error:
        raise Skip(f"{error.name} is not installed") from error
    network, tokenizer = new_model("llama(1M,head=64)")
    network.config.tie_word_embeddings = False
    network.lm_head.weight = torch.nn.Parameter(network.lm_head.weight.detach().clone())
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _config(folder: Path, sampler: str, dtype: Literal["float32", "bfloat16"] = "float32") -> CellConfig:
    return CellConfig(
        method="vcpo",
        staleness=0,
        seed=0,
        task=text_task(TASK).canonical,
        prompts=_PROMPTS,
        responses=_RESPONSES,
        model=model_identity(str(folder)),
        dtype=dtype,
        sampler=sampler,
    )
