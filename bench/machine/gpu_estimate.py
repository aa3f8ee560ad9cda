"""Memory and time of a cell on a GPU, from the sizes of the model: an estimate.

It was checked in parts on one H200 (docs/benchmarks/gpu.md).

Notation: N parameters, of which N_t are trained and N_a active per token; L layers; hidden width h, MLP width f (times
the active experts), query width q, key width k; C positions per forward pass of the learner; R responses per update,
S of them sampled at once, of prompt and response length n = n_p + n_r; b bytes per number of the compute dtype
(bfloat16 2, float32 4).

- weights: 4 N_t + b (N - N_t): trained ones stay float32; with bfloat16, autocast holds another copy of 2 N_t.
- gradients 4 N_t, optimizer 4 N_t for each tensor it keeps (AdamW: two moments).
- activations: C L (24h + (4q + 4f + n) b): three float32 numbers per channel for each norm; in bfloat16 28h, casts
  included; another (2q + 2k) (b + 2) with norms on query and key heads. Prompts of different lengths are padded, and
  attention then repeats keys and values for every query head and keeps a mask n x n of each row. With checkpointing
  4 C L h for the layers' inputs, plus the activations of one layer. (Tested: what autograd saves in small models.)
- logits: three buffers of 128 MiB, since the head is computed in vocabulary chunks, with score norms too (what these
  keep besides is not counted: without checkpointing the peak was up to 6.3% above the estimate).
- key-value cache: 2 S n L k b. Sampling and learning take turns: the larger of cache and (gradients stay) activations.
- kept between batches by `graph`, instead: a cache for all of its slots and, in bfloat16, a copy of the weights, 2 N_t.
- learning: R n (2 N_a + 2 n L q) operations per forward pass, at MFU of the dtype's peak. Scoring is one pass; training
  is three (backward counts as two, or as one with adapters, whose frozen weights need no gradient); checkpointing adds
  one.
- sampling: ceil(R / S) n_r steps; each takes the longest of reading the weights and a half-full cache, computing S
  tokens at MFU, and launching L layers from Python.

Every response is assumed to have the maximum length, so both times are upper bounds in that respect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from vcpo_bench.bench.machine.model_shapes import ModelShape

GIB = 2**30
MFU = 0.35
"""Assumed share of the peak that large matrix products reach."""
BANDWIDTH_SHARE = 0.6
"""Assumed share of the memory bandwidth that sampling reaches."""
RESERVED = 0.08
"""Assumed share of a GPU's memory for the CUDA context, fragmentation and workspaces."""
LOGIT_BYTES = 3 * 2**27
PROMPT_TOKENS = 256
"""Assumed length of a prompt in tokens."""
PASSES = tuple(1 << n for n in range(10, 18))
"""Sizes of a pass of the learner that `fitting_pass` chooses from, in positions."""
USABLE = 0.8
"""Share of free memory that a chosen pass may fill: on a CPU a cell took up to 1.2 times its estimate."""


class Gpu(NamedTuple):
    """A GPU: memory in bytes, dense peak operations per second by dtype, bandwidth in bytes per second."""

    name: str
    memory: float
    peaks: dict[str, float]
    bandwidth: float


GPUS = (
    Gpu("L40S", 48e9, {"bfloat16": 362e12, "float32": 91.6e12}, 864e9),
    Gpu("A100-80", 80e9, {"bfloat16": 312e12, "float32": 19.5e12}, 2039e9),
    Gpu("H100-80", 80e9, {"bfloat16": 989e12, "float32": 67e12}, 3350e9),
    Gpu("H200", 141e9, {"bfloat16": 989e12, "float32": 67e12}, 4800e9),
)
"""From the vendors' data sheets; the SXM version if there are several."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What one update of a cell does.

    Attributes:
        prompts: Prompts per update.
        responses: Responses per prompt.
        response_tokens: Longest response.
        prompt_tokens: Longest prompt.
        dtype: `float32` or `bfloat16`.
        lora: Rank of adapters on all linear layers; 0: all weights are trained.
        checkpointing: Activations are recomputed instead of kept.
        micro_tokens: Positions per forward pass of the learner; 0: the whole batch at once.
        slots: Responses sampled at once; 0: all.
        moments: Tensors that the optimizer keeps per trained parameter.
        layer_seconds: Least seconds of one layer in a sampling step: launching its kernels.
        keeps: Whether the sampler keeps its caches, and weights in the compute dtype, while the learner works.
    """

    prompts: int
    responses: int
    response_tokens: int
    prompt_tokens: int = PROMPT_TOKENS
    dtype: str = "float32"
    lora: int = 0
    checkpointing: bool = False
    micro_tokens: int = 0
    slots: int = 0
    moments: int = 2
    layer_seconds: float = 9e-4
    keeps: bool = False

    @property
    def rows(self) -> int:
        """Responses of an update."""
        return self.prompts * self.responses

    @property
    def length(self) -> int:
        """Positions of the longest row."""
        return self.prompt_tokens + self.response_tokens

    @property
    def positions(self) -> int:
        """Positions per forward pass of the learner; a row is never split."""
        whole = self.rows * self.length
        return max(self.length, min(self.micro_tokens or whole, whole))

    @property
    def sampled_at_once(self) -> int:
        """Responses sampled at once."""
        return min(self.slots or self.rows, self.rows)

    @property
    def width(self) -> int:
        """Bytes per number of the compute dtype."""
        return 2 if self.dtype == "bfloat16" else 4


class Memory(NamedTuple):
    """Bytes by use."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    cache: float
    kept: float = 0.0

    @property
    def peak(self) -> float:
        """Largest sum at any time: sampling and learning take turns."""
        always = self.weights + self.gradients + self.optimizer + self.kept
        return always + max(self.activations + self.logits, self.cache)


class UpdateTime(NamedTuple):
    """Seconds of one update."""

    sampling: float
    learning: float

    @property
    def total(self) -> float:
        """All, one after the other."""
        return self.sampling + self.learning


def trained_parameters(shape: ModelShape, lora: int) -> int:
    """Number of trained parameters: all, or those of adapters on every linear layer."""
    return lora * shape.layers * shape.linear_widths if lora else shape.parameters


def memory(shape: ModelShape, work: Workload) -> Memory:
    """Bytes that a cell needs."""
    trained = trained_parameters(shape, work.lora)
    cast = 2 * trained if work.width == 2 else 0
    frozen = work.width * shape.parameters if work.lora else 0
    rows = work.slots if work.keeps else work.sampled_at_once
    cache = 2 * rows * work.length * shape.layers * shape.key_value * work.width
    return Memory(
        weights=4 * trained + frozen + cast,
        gradients=4 * trained,
        optimizer=4 * work.moments * trained,
        activations=_activations(shape, work),
        logits=LOGIT_BYTES,
        cache=0 if work.keeps else cache,
        kept=cast + cache if work.keeps else 0,
    )


def _activations(shape: ModelShape, work: Workload) -> float:
    through = max(1, shape.active_experts) * shape.intermediate
    heads = 2 * shape.query + 2 * shape.key_value
    norms = (28 if work.width == 2 else 24) * shape.hidden + (heads * (work.width + 2) if shape.head_norms else 0)
    layer = work.positions * (norms + (4 * shape.query + 4 * through + work.length) * work.width)
    if work.checkpointing:
        return layer + 4 * work.positions * shape.layers * shape.hidden
    return layer * shape.layers


def forward_operations(shape: ModelShape, length: int) -> float:
    """Operations per position of a forward pass over rows of this length: matrix products and attention."""
    return 2 * shape.active + 2 * length * shape.layers * shape.query


def update_time(shape: ModelShape, work: Workload, gpu: Gpu) -> UpdateTime:
    """Seconds of one update, sampling and learning one after the other."""
    peak = MFU * gpu.peaks[work.dtype]
    passes = (3 if work.lora else 4) + work.checkpointing
    learning = work.rows * work.length * forward_operations(shape, work.length) * passes / peak
    need = memory(shape, work)
    step = max(
        (need.weights + (need.cache + need.kept) / 2) / (BANDWIDTH_SHARE * gpu.bandwidth),
        work.sampled_at_once * forward_operations(shape, work.length) / peak,
        shape.layers * work.layer_seconds,
    )
    steps = -(-work.rows // work.sampled_at_once) * work.response_tokens
    return UpdateTime(sampling=steps * step, learning=learning)


def fits(need: Memory, gpu: Gpu) -> bool:
    """Whether the cell fits on the GPU."""
    return need.peak <= (1 - RESERVED) * gpu.memory


def fitting_pass(shape: ModelShape, work: Workload, free: float) -> int:
    """The largest pass of the learner with which a cell fits into `free` bytes; the smallest that takes a batch whole.

    It is one of `PASSES`: the first of them where none fits.
    """
    need = {tokens: memory(shape, replace(work, micro_tokens=tokens)).peak for tokens in PASSES}
    fitting = [tokens for tokens in PASSES if need[tokens] <= USABLE * free] or [PASSES[0]]
    return next((tokens for tokens in fitting if tokens >= work.rows * work.length), fitting[-1])


def describe(shape: ModelShape, work: Workload, updates: int) -> list[str]:
    """The estimate as lines of text."""
    need = memory(shape, work)
    parts = ", ".join(f"{name} {value / GIB:.1f}" for name, value in need._asdict().items() if value)
    lines = [
        f"estimate, checked in parts on one GPU (docs/tasks.md): {shape.parameters / 1e9:.2f} B parameters, "
        f"{work.rows} responses of up to {work.prompt_tokens} + {work.response_tokens} tokens per update",
        f"GiB on one GPU: {need.peak / GIB:.1f} at the peak ({parts})",
    ]
    for gpu in GPUS:
        time = update_time(shape, work, gpu)
        verdict = "fits" if fits(need, gpu) else "does NOT fit"
        lines.append(
            f"  {gpu.name:8} {verdict:12}  {time.total:8.1f} s per update (sampling {time.sampling:.1f}, "
            f"learning {time.learning:.1f}), {time.total * updates / 3600:.1f} h for {updates} updates"
        )
    if not any(fits(need, gpu) for gpu in GPUS):
        lines.append("  fits nowhere: try --lora 64, --checkpointing, a smaller --micro-tokens, fewer slots")
    return lines
