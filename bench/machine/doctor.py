"""What this environment can do: versions, extras and devices."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, NamedTuple

import torch

import vcpo_bench
from vcpo_bench.bench.samplers.vllm_engine.releases import installed, parse
from vcpo_bench.errors import how_to_install

EXTRAS = {
    "hf": (("transformers", "tokenizers", "peft"), "language models with --model"),
    "vllm": (("vllm",), "--sampler vllm and vllm-server"),
    "eval": (("lm-eval",), "vcpo-bench lab eval"),
    "wandb": (("wandb",), "--report-to wandb"),
    "tensorboard": (("tensorboard",), "--report-to tensorboard"),
    "mlflow": (("mlflow",), "--report-to mlflow"),
    "trackio": (("trackio",), "--report-to trackio"),
}
TORCH_OF_VLLM = {(0, 24): (2, 11), (0, 26): (2, 11), (0, 27): (2, 13), (0, 32): (2, 13), (0, 33): (2, 14)}
"""First release of vLLM that requires this release of torch; the table in docs/vllm.md."""

Status = Literal["ok", "absent", "wrong", "skipped", "failed"]


class DoctorLine(NamedTuple):
    """One line of `vcpo-bench doctor`.

    Attributes:
        name: What was checked.
        status: `ok`; `absent` for a missing extra; `wrong` for versions that do not fit; `skipped` and `failed` only
            for checks.
        text: What was found, and what to do about it if anything.
    """

    name: str
    status: Status
    text: str


def examine() -> Iterator[DoctorLine]:
    """Versions, devices and extras."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield DoctorLine("vcpo-bench", "ok", f"{vcpo_bench.__version__}, Python {platform.python_version()}, {cores} cores")
    yield DoctorLine("torch", "ok", f"{torch.__version__}, {_devices()}")
    for extra, (packages, purpose) in EXTRAS.items():
        found = {name: _version(name) for name in packages}
        if extra == "vllm" and (own := installed()):
            found = {own[0]: own[1]}
        missing = [name for name, number in found.items() if not number]
        if missing:
            yield DoctorLine(extra, "absent", f"{', '.join(missing)}; for {purpose}: {how_to_install(extra)}")
        else:
            yield DoctorLine(extra, "ok", ", ".join(f"{name} {number}" for name, number in found.items()))
    if found_vllm := installed():
        yield fit(found_vllm[1], torch.__version__)


def fit(vllm: str, ours: str) -> DoctorLine:
    """Whether a release of vLLM works with a release of torch."""
    release, have = parse(vllm), parse(ours)
    known = [needed for first, needed in sorted(TORCH_OF_VLLM.items()) if first <= release]
    if not known:
        return DoctorLine("vllm and torch", "wrong", f"vLLM {vllm} is older than 0.24, the oldest that is supported")
    needed = known[-1]
    if have != needed:
        text = f"vLLM {vllm} is built for torch {needed[0]}.{needed[1]}, here is {ours}: see docs/vllm.md"
        return DoctorLine("vllm and torch", "wrong", text)
    return DoctorLine("vllm and torch", "ok", f"vLLM {vllm} is built for torch {needed[0]}.{needed[1]}")


def _devices() -> str:
    if not torch.cuda.is_available():
        return "no usable GPU"
    names = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return ", ".join(f"{one.name} with {one.total_memory / 2**30:.0f} GiB" for one in names)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
