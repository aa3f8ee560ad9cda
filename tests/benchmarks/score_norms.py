"""Time and memory of exact score norms, against a plain step and against the other ways to get them.

    python tests/benchmarks/score_norms.py                      # both models, one and two threads: a few minutes
    python tests/benchmarks/score_norms.py --model policy --threads 1

Prints the tables of docs/benchmarks/score_norms.md. All ways are timed in turns in one process and compared by their
fastest turn: by processor time on one thread, which other programs disturb less, by the clock on more. Memory is the
peak of a process of its own above what it held before its first step. opacus is left out where it is not installed.
"""

import argparse
import copy
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.policies.seeded_network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.score_norms import GradientSums, ScoreNorms
from vcpo_bench.bench.trajectories import Responses

REPEATS = {"policy": 25, "llama": 2}
SLOW = {"micro-batches of one": 1, "torch.func vmap(grad)": 1, "opacus": 1}  # timed in so many turns only


class PolicyTask(nn.Module):
    """chain(12) as the learner sees it: 128 trajectories, 16 prompts x 8 responses."""

    rows, prompt, tokens, vocabulary = 128, 12, 12, 13

    def __init__(self) -> None:
        super().__init__()
        self.model = TinyPolicy(PolicyConfig(self.vocabulary, 40))

    def batch(self) -> tuple[Tensor, ...]:
        prompts = torch.randint(self.vocabulary, (16, self.prompt)).repeat_interleave(8, 0)
        return prompts, torch.randint(self.vocabulary, (self.rows, self.tokens))

    def forward(self, prompts: Tensor, responses: Tensor) -> Tensor:
        return score(self.model, Responses(prompts, responses, torch.ones_like(responses, dtype=torch.bool))).logp


class LlamaLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        q, k = (z * cosine + torch.cat([-z.chunk(2, -1)[1], z.chunk(2, -1)[0]], -1) * sine for z in (q, k))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LlamaTask(nn.Module):
    """A Llama of 15 M parameters with random weights, 16 trajectories of 256 tokens."""

    rows, tokens, vocabulary, width, heads = 16, 256, 8192, 320, 5

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.layers = nn.ModuleList(LlamaLayer(self.width, self.heads, 864) for _ in range(8))
        self.norm, self.head = nn.RMSNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False)
        size = self.width // self.heads
        angles = torch.outer(torch.arange(self.tokens), 10000 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.rotary = (angles.cos(), angles.sin())

    def batch(self) -> tuple[Tensor, ...]:
        return (torch.randint(self.vocabulary, (self.rows, self.tokens + 1)),)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens[:, :-1])
        for layer in self.layers:
            x = layer(x, *self.rotary)
        return self.head(self.norm(x)).log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)


TASKS: dict[str, type[PolicyTask] | type[LlamaTask]] = {"policy": PolicyTask, "llama": LlamaTask}


def ways(name: str) -> dict[str, Callable[[], object]]:
    """One update of the model in every way; those with norms weigh trajectories with the norm-weighted baseline."""
    torch.manual_seed(0)
    task = TASKS[name]()
    batch, rewards, ratios = task.batch(), torch.rand(task.rows), torch.rand(task.rows)
    parameters = list(task.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-6, fused=True)
    untouched = copy.deepcopy(task)  # opacus' hooks would slow the other ways down
    norms = ScoreNorms(task)

    def coefficients(squared: Tensor) -> Tensor:
        evidence = ratios**2 * squared
        return ratios * (rewards - (evidence * rewards).sum() / evidence.sum())

    def step() -> None:
        optimizer.step()
        optimizer.zero_grad()

    def plain(*inputs: Tensor) -> None:
        logp = task(*inputs)
        logp.backward(-coefficients(torch.ones(task.rows))[:, None].expand_as(logp))
        step()

    def book_keeping() -> None:
        with norms.record():
            logp = task(*batch)
        norms.assemble(coefficients(norms.squared_norms(logp)))
        norms.release()
        step()

    def second_backward() -> None:
        with norms.record():
            logp = task(*batch)
        squared = norms.squared_norms(logp, retain_graph=True)
        logp.backward(-coefficients(squared)[:, None].expand_as(logp))
        step()

    def split_in_two() -> None:
        sums, found = GradientSums(), []
        for part in torch.arange(task.rows).chunk(2):
            with norms.record():
                logp = task(*(x[part] for x in batch))
            found.append(norms.squared_norms(logp))
            sums.add(norms, (ratios * rewards)[part], ratios[part])
            norms.release()
        evidence = ratios**2 * torch.cat(found)
        sums.assemble([1.0, -(evidence * rewards).sum() / evidence.sum()])
        step()

    def one_by_one() -> None:
        totals = [[torch.zeros_like(p) for p in parameters] for _ in range(2)]
        found = []
        for i in range(task.rows):
            gradients = torch.autograd.grad(task(*(x[i : i + 1] for x in batch)).sum(), parameters)
            found.append(torch.stack(torch._foreach_norm(gradients)).square().sum())
            for total, weight in zip(totals, ((ratios * rewards)[i], ratios[i]), strict=True):
                torch._foreach_add_(total, gradients, alpha=float(weight))
        evidence = ratios**2 * torch.stack(found)
        baseline = (evidence * rewards).sum() / evidence.sum()
        for parameter, first, second in zip(parameters, *totals, strict=True):
            parameter.grad = baseline * second - first
        step()

    def apply(samples: list[Tensor]) -> None:
        squared = torch.stack([sample.flatten(1).square().sum(1) for sample in samples]).sum(0)
        weights = coefficients(squared)
        for parameter, sample in zip(parameters, samples, strict=True):
            parameter.grad = -(weights @ sample.flatten(1)).view_as(parameter)
        step()

    def vmap_grad() -> None:
        values = {key: value.detach() for key, value in task.named_parameters()}

        def total(values: dict[str, Tensor], *row: Tensor) -> Tensor:
            return torch.func.functional_call(task, values, tuple(x[None] for x in row)).sum()

        dims = (None, *[0] * len(batch))
        found = torch.func.vmap(torch.func.grad(total), in_dims=dims)(values, *batch)
        apply([found[key] for key in values])

    found: dict[str, Callable[[], object]] = {
        "plain step": lambda: plain(*batch),
        "norms + book-keeping": book_keeping,
        "norms + second backward": second_backward,
        "norms + two sums, two micro-batches": split_in_two,
        "micro-batches of one": one_by_one,
        "torch.func vmap(grad)": vmap_grad,
    }
    if name == "policy":
        found["plain step, each prompt once per group"] = lambda: plain(batch[0][::8], batch[1])
    if importlib.util.find_spec("opacus"):
        found["opacus"] = with_opacus(untouched, batch, apply)
    return found


def with_opacus(
    task: nn.Module, batch: tuple[Tensor, ...], apply: Callable[[list[Tensor]], None]
) -> Callable[[], None]:
    """Per-sample gradients by opacus."""
    from opacus import GradSampleModule  # heavy, and not always there

    wrapped = GradSampleModule(task, loss_reduction="sum", strict=False)

    def run() -> None:
        wrapped(*batch).sum().backward()
        samples = [parameter.grad_sample for parameter in wrapped.parameters()]
        for parameter in wrapped.parameters():
            parameter.grad_sample = parameter.grad = None
        apply(samples)

    return run


def memory(name: str, way: str, threads: int) -> float:
    """Peak memory of an update above what was held before the first, in MiB; in a process of its own."""
    command = [sys.executable, __file__, "--model", name, "--threads", str(threads), "--peak-of", way]
    # a fixed threshold makes glibc return every larger tensor at once, so that the peak holds no freed memory
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(json.loads(done.stdout))


def peak(name: str, way: str) -> float:
    """What this process holds at most during its second update above what it held before the first, MiB."""

    def status(key: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key))

    step = ways(name)[way]
    before = status("VmRSS")
    step()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    step()
    return (status("VmHWM") - before) / 1024


def table(name: str, threads: int) -> None:
    """Print one table."""
    torch.set_num_threads(threads)
    clock = process_time if threads == 1 else perf_counter
    steps = ways(name)
    times: dict[str, list[float]] = {way: [] for way in steps}
    for turn in range(REPEATS[name] + 1):
        for way, step in steps.items():
            if turn <= SLOW.get(way, turn):
                begin = clock()
                step()
                times[way].append(clock() - begin)
    size = sum(parameter.numel() for parameter in TASKS[name]().parameters())
    print(f"\n{name}: {size / 1e6:.2f} M parameters, {TASKS[name].rows} trajectories, {threads} thread(s)\n")
    print("| one update | ms | time | MiB | memory |\n|---|---:|---:|---:|---:|")
    fastest = {way: min(taken[1:]) for way, taken in times.items()}
    del steps
    held = {way: memory(name, way, threads) for way in times}
    for way in times:
        ratios = fastest[way] / fastest["plain step"], held[way] / held["plain step"]
        print(f"| {way} | {fastest[way] * 1e3:.1f} | {ratios[0]:.2f} | {held[way]:.0f} | {ratios[1]:.2f} |", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=TASKS, action="append")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--default-allocator", action="store_true", help="leave glibc's settings alone")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # opacus on hooks of modules whose inputs need no gradient
    if options.peak_of:
        torch.set_num_threads(options.threads[0])
        print(peak(options.model[0], options.peak_of))
        return
    if not options.default_allocator:
        keep_freed_memory()
    for name in options.model or TASKS:
        for threads in options.threads or (1, 2):
            table(name, threads)


if __name__ == "__main__":
    main()
