"""Stage 1: why sampling is slow where responses end, and what one graph per token gives: Llamas with random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from kit import Failed, Result, Setup, Skipped, broken, release, said, seconds_of
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.captured import Step as CapturedStep
from vcpo_bench.bench.policies.hf.captured import cuda_graph, eager
from vcpo_bench.bench.policies.hf.generate import generate
from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import SamplingLoop, SamplingOptions, refill
from vcpo_bench.bench.trajectories import Responses, Rollout

PROMPT, GROUP, EOS = 24, 8, 0
REPEATS = 2


class Shape(NamedTuple):
    """Sizes of a Llama."""

    layers: int
    width: int
    inner: int
    heads: int
    shared: int
    vocabulary: int


SHAPES = {"smollm2": Shape(30, 576, 1536, 9, 3, 49152), "30M": Shape(8, 576, 1536, 9, 9, 101)}
TINY = Shape(2, 32, 48, 4, 2, 101)
LOOPS: dict[str, Callable[[], SamplingLoop]] = {
    "torch": lambda: refill,
    "generate": lambda: generate,
    "buckets": lambda: GraphLoop(capture=eager),  # fixed shapes without a graph: what bucketed rows alone do
    "graph": GraphLoop,
    "fused": lambda: GraphLoop(capture=_fused),
}
WAYS = {
    "default": ("torch", "generate", "buckets", "graph"),
    "off": ("buckets", "graph"),
    "fused": ("graph", "fused"),
}
ROUNDING = 0.1
"""Nats by which the log-probability of a token that was drawn may differ from the learner's: bfloat16."""


def measure(setup: Setup, model: str, way: str) -> Result:
    """Seconds of a batch by four loops, 64 and 128 rows of 64 and 128 tokens, where responses end and where none does.

    Other ways than the default are tried with two loops at 128 rows of 64 tokens. Each repeat ends its responses
    elsewhere: what is slow are shapes that were not seen before. Rounding changes tokens, and then all after them; so
    every loop must give its own tokens the log-probabilities of the learner, up to rounding.

    Args:
        setup: Where.
        model: One of `SHAPES`.
        way: `default`; `off`: without cuDNN's attention, as always with `torch`; `fused`: a graph beside one of kernels
            that torch.compile has fused.

    Raises:
        Failed: A loop raised, or draws from another distribution than the learner's.
        Skipped: There is nothing to compile for.
    """
    if way == "fused" and setup.device.startswith("mock"):
        raise Skipped("torch.compile cannot read the mock device")
    torch.backends.cuda.enable_cudnn_sdp(way != "off")
    policy = random_policy(setup, model)
    found: Result = {"model": model, "way": way, "batches": [], "equality": []}
    failed: list[str] = []
    sizes = [(128, 64), (64, 64), (64, 128), (128, 128)] if way == "default" else [(128, 64)]
    loops = {name: LOOPS[name] for name in WAYS[way]}
    for rows, length in setup.pick(sizes, [(16, 6)]):
        for ends in (True, False):
            drawn = _by_loop(setup, policy, loops, found, failed, (rows, length, ends))
            if broken(setup.device):
                raise Failed("; ".join(failed), found)
            if "graph" in drawn and len(drawn) > 1:
                found["equality"].append({"rows": rows, "length": length, "ends": ends} | _compared(drawn))
    if failed:
        raise Failed("; ".join(failed), found)
    return found


def _by_loop(
    setup: Setup,
    policy: CausalPolicy,
    loops: Mapping[str, Callable[[], SamplingLoop]],
    found: Result,
    failed: list[str],
    size: tuple[int, int, bool],
) -> dict[str, Rollout]:
    """The last batch of each loop; times, or an error, are added to what is found."""
    rows, length, ends = size
    draws = [draw(rows, length, seed if ends else None) for seed in range(setup.pick(REPEATS, 1) + 1)]
    drawn: dict[str, Rollout] = {}
    for name, loop in loops.items():
        policy.sampling = SamplingOptions(loop())
        row: dict[str, Any] = {"loop": name, "rows": rows, "length": length, "ends": ends}
        try:
            times = [seconds_of(setup.device, partial(policy.sample, draw)) for draw in draws]
            drawn[name] = policy.sample(draws[-1])
        except Exception as problem:  # whatever a driver raises is a result
            failed.append(f"{name}, {rows} x {length}: {said(problem)}")
            found["batches"].append(row | {"error": said(problem)})
            if broken(setup.device):
                break
        else:
            best, error = min(times[1:]), _error(policy, draws[-1], drawn[name])
            row |= {"first": times[0], "best": best, "worst": max(times[1:]), "ms_per_token": 1e3 * best / length}
            found["batches"].append(row | {"error_of_logp": error})
            if not error <= ROUNDING:
                failed.append(f"{name}, {rows} x {length}: {error:.2g} nats from the learner")
        setup.keep(found)
    policy.sampling = SamplingOptions()
    release(setup.device)
    return drawn


@torch.no_grad()
def _error(policy: CausalPolicy, asked: Draw, drawn: Rollout) -> float:
    """Largest difference, in nats, between the log-probability that a loop gives a token it drew, and the learner's."""
    scored = policy.score(Responses(asked.prompts, drawn.responses, drawn.mask)).logp.cpu()
    gaps = (drawn.logp - scored).abs()[drawn.mask]
    return float(gaps.max()) if len(gaps) else float("nan")


def _compared(drawn: Mapping[str, Rollout]) -> Result:
    """How a graph compares with its steps one by one: bits, the share of responses with the same tokens, and the mean
    position of the first token that differs."""
    one, other = drawn["graph"], drawn["fused" if "fused" in drawn else "buckets"]
    before = (one.responses != other.responses).cumsum(1) == 0
    same = before.all(1)
    bits = bool(same.all()) and torch.equal(one.logp, other.logp)
    return {
        "bit_identical": bits,
        "same": float(same.float().mean()),
        "from": float(before.sum(1)[~same].float().mean()),
    }


def draw(rows: int, length: int, ends: int | None) -> Draw:
    """Prompts of full length; the number 0 draws the first token of the vocabulary, which is the end."""
    generator = torch.Generator().manual_seed(1 + (ends or 0))
    prompts = torch.randint(2, 100, (rows // GROUP, PROMPT), generator=generator)
    uniforms = 0.02 + 0.98 * torch.rand(rows, length, dtype=torch.float64, generator=generator)
    if ends is not None:
        last: Tensor = torch.randint(length // 4, length, (rows,), generator=generator)
        uniforms[torch.arange(rows), last] = 0.0
    return Draw(prompts, uniforms, EOS if ends is not None else None)


def _fused(step: CapturedStep) -> CapturedStep:
    """Compile what a program computes for a token, as one whole, and capture it where there is a GPU."""
    program: Any = step.__self__  # type: ignore[attr-defined]
    device = program.model.device
    if "forward" not in vars(program):
        backend = "inductor" if device.type == "cuda" else "aot_eager"
        program.forward = torch.compile(program.forward, backend=backend, dynamic=False, fullgraph=True)
    return cuda_graph(device, step) if device.type == "cuda" else step


def random_policy(setup: Setup, model: str) -> CausalPolicy:
    """A Llama with random weights, in bfloat16 (float32 on the mock device, which has no autocast)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = setup.pick(SHAPES[model], TINY)
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.shared,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        pad_token_id=1,
        bos_token_id=None,
        eos_token_id=EOS,
    )
    torch.manual_seed(0)
    network = LlamaForCausalLM(config).to(setup.device)
    return CausalPolicy(network, 1, torch.float32 if setup.device.startswith("mock") else torch.bfloat16)
