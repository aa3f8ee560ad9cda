"""vLLM beside the other samplers on one model: speed, time of a push, agreement, mismatch of a bfloat16 engine.

`python tests/benchmarks/vllm_sampling.py --model DIR --task EXPRESSION` prints the tables of docs/benchmarks/vllm.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.cells.opening import open_policy, open_sampler, open_task
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.trajectories import Responses, Rollout

RESPONSES = 8
COMPLETIONS = 4000
Sampler = Callable[[torch.Tensor, torch.Tensor], Rollout]


def config(model: Path, task: str, sampler: str, prompts: int) -> CellConfig:
    return CellConfig(
        method="reinforce", staleness=0, seed=0, task=text_task(task).canonical, prompts=prompts, responses=RESPONSES,
        model=model_identity(str(model)), sampler=sampler,
    )  # fmt: skip


def draw(task: Task, sampler: Sampler, batch: int, prompts: int) -> tuple[Rollout, torch.Tensor, float]:
    """One batch, its rewards and the seconds it took."""
    asked = task.training_prompts(0, 1000 + batch, prompts)
    noise = torch.from_numpy(uniforms(0, "benchmark", batch, prompts * RESPONSES, task.max_response))
    began = perf_counter()
    rollout = sampler(asked, noise)
    seconds = perf_counter() - began
    return rollout, task.reward(asked, rollout.responses, rollout.mask), seconds


def ratios(policy: CausalPolicy, task: Task, rollout: Rollout, batch: int, prompts: int) -> torch.Tensor:
    """Learner minus engine, log-probability per token [B, T], 0 at padding."""
    asked = task.training_prompts(0, 1000 + batch, prompts)
    with torch.no_grad():
        return torch.where(
            rollout.mask, policy.score(Responses(asked, rollout.responses, rollout.mask)).logp - rollout.logp, 0.0
        )


def speed(task: Task, name: str, sampler: Sampler, prompts: int) -> list[torch.Tensor]:
    """Print tokens per second (best batch); the rewards of all completions."""
    rewards, rates = [], []
    draw(task, sampler, 0, prompts)
    for batch in range(math.ceil(COMPLETIONS / (prompts * RESPONSES))):
        rollout, reward, seconds = draw(task, sampler, batch, prompts)
        rewards.append(reward)
        rates.append(float(rollout.mask.sum()) / seconds)
    print(f"| {name} | {max(rates):,.0f} | {sum(rates) / len(rates):,.0f} |", flush=True)
    return rewards


def agreement(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    a, b = (torch.cat(rewards).view(-1, RESPONSES).mean(1) for rewards in (ours, theirs))
    half = 1.96 * float((b - a).std()) / math.sqrt(len(a))
    print(
        f"\n{len(a) * RESPONSES} completions each: mean reward {a.mean():.4f} (torch) and {b.mean():.4f} (vLLM), "
        f"difference {b.mean() - a.mean():+.4f} +- {half:.4f} (95%, paired by prompt)"
    )


def mismatch(policy: CausalPolicy, task: Task, name: str, sampler: Sampler, prompts: int) -> None:
    """Print how far the engine's log-probabilities are from the learner's, at lag 0."""
    logs = torch.cat([ratios(policy, task, draw(task, sampler, i, prompts)[0], i, prompts) for i in range(4)])
    mask = logs != 0
    sequence = logs.sum(1).exp()
    ess = float(sequence.sum() ** 2 / (len(sequence) * (sequence**2).sum()))
    token = logs[mask].double() if mask.any() else logs.flatten()
    kl = float((token.exp() - 1 - token).mean())
    off = (token.exp() - 1).abs()
    print(
        f"| {name} | {ess:.6f} | {kl:.1e} | {off.mean():.1e} | {off.max():.1e} | "
        f"{(sequence - 1).abs().max():.1e} |", flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--prompts", type=int, default=50)
    options = parser.parse_args()
    model, prompts = options.model, options.prompts
    found = {name: config(model, options.task, name, prompts) for name in ("torch", "generate", "vllm")}
    task = open_task(found["torch"], model)
    print("| sampler | tokens/s, best | mean |\n|---|---|---|")
    rewards = {}
    policies = {}
    for name in ("torch", "generate"):
        policy = policies[name] = open_policy(found[name], task, model)
        rewards[name] = speed(task, name, lambda p, u, m=policy: m.sample(Draw(p, u, task.eos)), prompts)
    policy = policies["torch"]
    assert isinstance(policy, CausalPolicy)
    external = open_sampler(found["vllm"], task, policy)
    assert external is not None
    pushes = []
    for _ in range(5):
        began = perf_counter()
        external.set_weights(policy.named_parameters(), 0)
        pushes.append(perf_counter() - began)
    exact: Sampler = lambda p, u: external.generate(p, u, task.eos)  # noqa: E731
    rewards["vllm"] = speed(task, "vllm", exact, prompts)
    count = sum(p.numel() for p in policy.parameters())
    print(f"\npush of {count:,} parameters: {min(pushes):.3f} s (best of 5)")
    agreement(rewards["torch"], rewards["vllm"])
    print("\n| engine | ESS / n | KL (k3) | mean |ratio-1| | max | max of sequences |\n|---|---|---|---|---|---|")
    mismatch(policy, task, "vLLM float32", exact, prompts)
    external.close()
    half = open_sampler(config(model, options.task, "vllm(dtype=bfloat16)", prompts), task, policy)
    assert half is not None
    half.set_weights(policy.named_parameters(), 0)
    mismatch(policy, task, "vLLM bfloat16", lambda p, u: half.generate(p, u, task.eos), prompts)
    half.close()


if __name__ == "__main__":
    main()
