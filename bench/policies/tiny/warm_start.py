"""Warm starts of the built-in tiny policy: safetensors files of pretrained weights, with their origin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from vcpo_bench import __version__
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.tasks import TokenTask
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import replacing

_SHIPPED = Path(__file__).with_name("warm")


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
    """

    task: str
    policy: TinyPolicy
    seed: int
    steps: int
    reward: float
    greedy: float


def new_policy(task: TokenTask, seed: int = 0) -> TinyPolicy:
    """An untrained policy of the default size for a task."""
    return TinyPolicy(PolicyConfig(task.vocab_size, task.context), seed)


def save_warm_start(start: WarmStart, path: Path) -> None:
    """Write weights and origin to a safetensors file (under 1 MB), atomically.

    Raises:
        UsageError: The file cannot be written.
    """
    origin = {
        "task": start.task,
        "seed": str(start.seed),
        "steps": str(start.steps),
        "reward": f"{start.reward:.4f}",
        "greedy": f"{start.greedy:.4f}",
        "version": __version__,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            save_file(start.policy.state_dict(), draft, origin)
    except (OSError, SafetensorError) as error:
        raise UsageError(f"cannot write the warm start to {path}: {error}; choose another file") from error


def load_warm_start(task: TokenTask, path: Path | None = None) -> TinyPolicy:
    """The policy of `read_warm_start`; raises the same `UsageError`."""
    return read_warm_start(task, path).policy


def read_warm_start(task: TokenTask, path: Path | None = None) -> WarmStart:
    """The warm start of a task with its origin.

    Args:
        task: Task of the policy.
        path: File to read; None: the one that ships with the package.

    Raises:
        UsageError: None ships for this variant, or the file is missing, damaged or made for another task.
    """
    remedy = f"make one with: vcpo-bench warmup --task '{task.canonical}'"
    path = path or _SHIPPED / f"{task.canonical}.safetensors"
    if not path.is_file():
        raise UsageError(f"no warm start for task {task.canonical!r} at {path}; {remedy}")
    policy = new_policy(task)
    try:
        with safe_open(path, "pt") as file:
            origin = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if origin.get("task") != task.canonical:
            raise UsageError(f"warm start {path} is for task {origin.get('task')!r}, not {task.canonical!r}; {remedy}")
        policy.load_state_dict(weights)
        reward, greedy = float(origin["reward"]), float(origin.get("greedy", "nan"))
        return WarmStart(task.canonical, policy, int(origin["seed"]), int(origin["steps"]), reward, greedy)
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise UsageError(f"warm start {path} is damaged; {remedy}") from error
