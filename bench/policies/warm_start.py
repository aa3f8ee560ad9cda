"""Warm starts of the built-in policies: safetensors files of pretrained weights, with their origin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from vcpo_bench import __version__
from vcpo_bench.bench.policies.catalog import EmbeddedPolicy
from vcpo_bench.bench.policies.embedded.tiny import Tiny
from vcpo_bench.bench.tasks import TokenTask
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_bytes

if TYPE_CHECKING:
    from vcpo_bench.bench.policies.base import Policy

TINY = Tiny()
"""The kind of policy that is meant where none is named: in files too that were written before there was a choice."""


@dataclass(frozen=True)
class WarmStart:
    """A policy to start reinforcement learning from.

    Attributes:
        task: Canonical expression of its task.
        policy: The policy.
        seed: Seed of its initial weights and demonstrations.
        steps: Number of supervised updates.
        reward: Its sampled reward on the held-out prompts.
        greedy: Its greedy reward on them; NaN in files from before it was recorded.
        kind: What kind of policy it is.
    """

    task: str
    policy: Policy
    seed: int
    steps: int
    reward: float
    greedy: float
    kind: EmbeddedPolicy = TINY


def save_warm_start(start: WarmStart, path: Path) -> None:
    """Write weights and origin to a safetensors file (under 1 MB), atomically.

    Raises:
        UsageError: The file cannot be written.
    """
    from safetensors.torch import save

    origin = {
        "task": start.task,
        "policy": start.kind.text(),
        "seed": str(start.seed),
        "steps": str(start.steps),
        "reward": f"{start.reward:.4f}",
        "greedy": f"{start.greedy:.4f}",
        "version": __version__,
    }
    weights = {name: tensor.float() for name, tensor in start.policy.state_dict().items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, save(weights, origin), typed=True)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot write the warm start to {path}: {error}; choose another file") from error


def load_warm_start(task: TokenTask, path: Path | None = None, kind: EmbeddedPolicy = TINY) -> Policy:
    """The policy of `read_warm_start`; raises the same `UsageError`."""
    return read_warm_start(task, path, kind).policy


def read_warm_start(task: TokenTask, path: Path | None = None, kind: EmbeddedPolicy = TINY) -> WarmStart:
    """The warm start of a task with its origin.

    Args:
        task: Task of the policy.
        path: File to read; None: the one that ships with the package.
        kind: What kind of policy it must be.

    Raises:
        UsageError: None ships for this variant, or the file is missing, damaged or made for another task or policy.
    """
    path = path or _shipped(task, kind)
    origin, policy = read_origin(task, path, kind), kind.untrained(task, seed=0)
    try:
        with safe_open(path, "pt") as file:
            policy.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - not a dict
        reward, greedy = float(origin["reward"]), float(origin.get("greedy", "nan"))
        return WarmStart(task.canonical, policy, int(origin["seed"]), int(origin["steps"]), reward, greedy, kind)
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise UsageError(f"warm start {path} is damaged; {_remedy(task, kind)}") from error


def read_origin(task: TokenTask, path: Path | None = None, kind: EmbeddedPolicy = TINY) -> dict[str, str]:
    """What the file of a warm start says of it, such as its `reward`; weights are not read. As `read_warm_start`."""
    path, remedy = path or _shipped(task, kind), _remedy(task, kind)
    if not path.is_file():
        where = "" if path.parent == kind.starts else f" at {path}"
        raise UsageError(f"no warm start for task {task.canonical!r}{where}; {remedy}")
    try:
        with safe_open(path, "np") as file:
            origin: dict[str, str] = file.metadata() or {}
    except SafetensorError as error:
        raise UsageError(f"warm start {path} is damaged; {remedy}") from error
    if origin.get("task") != task.canonical:
        raise UsageError(f"warm start {path} is for task {origin.get('task')!r}, not {task.canonical!r}; {remedy}")
    if (found := origin.get("policy", TINY.text())) != kind.text():
        raise UsageError(
            f"warm start {path} is a policy {found!r}, not {kind.text()!r}; name it with --policy, or {remedy}"
        )
    return origin


def _remedy(task: TokenTask, kind: EmbeddedPolicy) -> str:
    other = "" if kind == TINY else f" --policy '{kind.text()}'"
    plugin = " --plugin FILE" if task.source else ""
    return (
        f"make one with: vcpo-bench lab warmup --task '{task.canonical}'{other}{plugin} --out start.safetensors; "
        "then add --start start.safetensors"
    )


def _shipped(task: TokenTask, kind: EmbeddedPolicy) -> Path:
    """The file that ships for a task."""
    if kind.starts is None:
        raise UsageError(f"no warm starts ship with the policy {kind.text()!r}; {_remedy(task, kind)}")
    return kind.starts / f"{task.canonical}.safetensors"
