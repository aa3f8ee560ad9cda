"""Where the time of one plain update goes, on one thread: `python tests/benchmarks/update_parts.py [TASK]`.

Times are CPU time of the thread, the least of several repetitions, so that other load on the machine matters little.
The rate counts the products with weight matrices only; its share is of the best rate that a product of two 1024 x 1024
matrices reaches here.
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task, token_task
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.trajectories import Responses

PROMPTS, RESPONSES = 16, 8


def milliseconds(work: Callable[[], object], repeats: int = 15) -> float:
    """Least CPU time of one call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return 1e3 * min(times)


def weight_products(policy: TinyPolicy, prompt_tokens: int, response_tokens: int) -> float:
    """Gflop of a forward pass; the last layer makes only keys and values of a prompt."""
    width, layers = policy.config.width, policy.config.layers
    prompt = prompt_tokens * width * width * (12 * (layers - 1) + 2)
    response = response_tokens * (layers * 12 * width * width + policy.config.vocab_size * width)
    return 2e-9 * (prompt + response)


def naive_sample(policy: TinyPolicy, prompts: Tensor, length: int) -> Tensor:
    """Sampling without a cache: the whole sequence again for every token."""
    sequence = prompts.repeat_interleave(RESPONSES, 0)
    with torch.no_grad():
        for _ in range(length):
            p = policy(sequence)[:, -1].softmax(-1)
            sequence = torch.cat([sequence, torch.multinomial(p, 1)], 1)
    return sequence


def naive_update(policy: TinyPolicy, optimizer: torch.optim.Optimizer, prompts: Tensor, length: int) -> None:
    """The same arithmetic written without care: no cache, no shared prompts, logits everywhere."""
    sequence = naive_sample(policy, prompts, length)
    logp = policy(sequence[:, :-1]).log_softmax(-1).gather(-1, sequence[:, 1:, None]).squeeze(-1)
    optimizer.zero_grad()
    logp[:, -length:].mean().backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()


def measure(task: Task) -> None:
    """Print the table for a task."""
    policy = load_warm_start(task)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6, weight_decay=0.0, fused=True)
    prompts, T = task.training_prompts(0, 0, PROMPTS), task.max_response
    draws = torch.from_numpy(uniforms(0, "sampling", 0, PROMPTS * RESPONSES, T))
    rollout = policy.sample(Draw(prompts, draws, task.eos))

    def scored() -> Tensor:
        return score(policy, Responses(prompts, rollout.responses, rollout.mask)).logp

    def learned() -> None:
        optimizer.zero_grad()
        scored().backward(rollout.logp)

    def stepped() -> None:
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()

    square = torch.randn(1024, 1024)
    best_rate = 2 * 1.024**3 / (milliseconds(lambda: square @ square) / 1e3)
    sampling = milliseconds(lambda: policy.sample(Draw(prompts, draws, task.eos)))
    scoring = milliseconds(scored)
    both = milliseconds(learned)
    stepping = milliseconds(stepped)
    forward = weight_products(policy, PROMPTS * (task.prompt_length - 1), PROMPTS * RESPONSES * T)
    drawn = weight_products(policy, PROMPTS * (task.prompt_length - 1), int(rollout.mask.sum()))
    rows = [
        ("sample", sampling, drawn),
        ("score", scoring, forward),
        ("backward", both - scoring, 2 * forward),
        ("clip, AdamW", stepping, 0.0),
        ("update", sampling + both + stepping, drawn + 3 * forward),
    ]
    print(f"{task.canonical}: {PROMPTS} prompts x {RESPONSES} responses, best matrix product {best_rate:.0f} Gflop/s")
    for name, ms, gflop in rows:
        rate = gflop / ms * 1e3
        print(f"  {name:12} {ms:7.1f} ms  {rate:6.1f} Gflop/s  {rate / best_rate:5.0%}")
    print(f"  {'evaluation':12} {milliseconds(lambda: evaluate(policy, task), 5):7.1f} ms")
    print(f"  {'naive update':12} {milliseconds(lambda: naive_update(policy, optimizer, prompts, T), 5):7.1f} ms")


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_freed_memory()
    for expression in sys.argv[1:] or ["chain", "walk", "walk-eos"]:
        measure(token_task(expression))
