"""Stages 1 and 8: is one graph per token right, and how fast are its batches? A Llama with random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from kit import Failed, Result, Setup, Skipped, broken, release, said, seconds_of
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.captured import Step as CapturedStep
from vcpo_bench.bench.policies.hf.captured import cuda_graph, eager
from vcpo_bench.bench.policies.hf.graph_loop import GraphLoop
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.sampling import SamplingLoop, SamplingOptions
from vcpo_bench.bench.trajectories import Responses, Rollout

PROMPT, GROUP, EOS = 24, 8, 0
SIZES = ((64, 128), (128, 128), (128, 64))
"""Rows and tokens. First that in which a graph and its steps one by one gave half of the responses differently."""
ONE = ((128, 64),)


class Shape(NamedTuple):
    """Sizes of a Llama."""

    layers: int
    width: int
    inner: int
    heads: int
    shared: int
    vocabulary: int


SMOLLM2 = Shape(30, 576, 1536, 9, 3, 49152)
TINY = Shape(2, 32, 48, 4, 2, 101)
LOOPS: dict[str, Callable[[], SamplingLoop]] = {
    "buckets": lambda: GraphLoop(capture=eager),  # the steps of the graph one by one
    "graph": GraphLoop,
    "fused": lambda: GraphLoop(capture=_fused),
}
ROUNDING = 0.1
"""Nats by which the log-probability of a token that was drawn may differ from the learner's: bfloat16."""


def measure(setup: Setup) -> Result:
    """Is a graph right: log-probabilities of what it draws, against the learner's; and seconds of a batch.

    Rounding changes tokens, and then all after them; so every loop must give its own tokens the log-probabilities of
    the learner, up to rounding. Each batch ends its responses elsewhere.

    Raises:
        Failed: A loop raised, or draws from another distribution than the learner's.
    """
    return _measured(setup, ("buckets", "graph"), SIZES, ends=True)


def fused(setup: Setup) -> Result:
    """What kernels give that torch.compile has fused, beside the graph of all. No response ends: one compilation.

    Raises:
        Failed: See `measure`.
        Skipped: There is nothing to compile for.
    """
    if setup.device.startswith("mock"):
        raise Skipped("torch.compile cannot read the mock device")
    return _measured(setup, ("graph", "fused"), ONE, ends=False)


def _measured(setup: Setup, names: Sequence[str], sizes: Sequence[tuple[int, int]], ends: bool) -> Result:
    policy = random_policy(setup)
    found: Result = {"batches": [], "equality": []}
    failed: list[str] = []
    for rows, length in setup.pick(sizes, [(16, 6)]):
        drawn = _by_loop(setup, policy, names, found, failed, (rows, length, ends))
        if broken(setup.device):
            raise Failed("; ".join(failed), found)
        if len(drawn) > 1:
            found["equality"].append({"rows": rows, "length": length, "ends": ends} | _compared(drawn))
            setup.keep(found)
    if failed:
        raise Failed("; ".join(failed), found)
    return found


def _by_loop(
    setup: Setup,
    policy: CausalPolicy,
    names: Sequence[str],
    found: Result,
    failed: list[str],
    size: tuple[int, int, bool],
) -> dict[str, Rollout]:
    """The last batch of each loop; times, or an error, are added to what is found."""
    rows, length, ends = size
    draws = [draw(rows, length, seed if ends else None) for seed in range(setup.pick(3, 2))]
    drawn: dict[str, Rollout] = {}
    for name in names:
        policy.sampling = SamplingOptions(LOOPS[name]())
        row: dict[str, Any] = {"loop": name, "rows": rows, "length": length, "ends": ends}

        def sample(asked: Draw, name: str = name) -> None:
            drawn[name] = policy.sample(asked)

        try:
            first, *later = (seconds_of(setup.device, partial(sample, asked)) for asked in draws)
            error = _error(policy, draws[-1], drawn[name])
        except Exception as problem:  # whatever a driver raises is a result
            failed.append(f"{name}, {rows} x {length}: {said(problem)}")
            found["batches"].append(row | {"error": said(problem)})
            drawn.pop(name, None)
            if broken(setup.device):
                break
        else:
            best = min(later)
            row |= {"first": first, "best": best, "worst": max(later), "ms_per_token": 1e3 * best / length}
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
    """How two loops compare: bits, the share of responses with the same tokens, and the mean
    position of the first token that differs."""
    one, other = drawn.values()
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


def random_policy(setup: Setup) -> CausalPolicy:
    """A Llama of SmolLM2's shape, random weights, in bfloat16 (float32 on the mock device, which has no autocast)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = setup.pick(SMOLLM2, TINY)
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
