"""One token of many responses as a program of fixed shapes: forward, head and draw, all in buffers that stay."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from vcpo_bench.bench.policies.hf.cache_slots import Slots
from vcpo_bench.bench.policies.hf.network import CausalNetwork
from vcpo_bench.bench.policies.hf.sampling import ANY_SHAPE, TokenDraws
from vcpo_bench.errors import UsageError

BUCKETS = (32, 64, 128, 192, 256)
"""Numbers of responses that a step is captured for."""
_COLUMNS = 64
_CAPTURING = Lock()
"""A capture begins by waiting for the device, which would break one that another thread is making."""
_WARM = 2
"""Steps before a capture: libraries allocate and choose their kernels at first use."""

Step = Callable[[], object]
Capture = Callable[[Step], Step]


def bucket(rows: int) -> int:
    """The smallest bucket with room for so many rows; the largest where none has."""
    return next((size for size in BUCKETS if size >= rows), BUCKETS[-1])


def cuda_graph(device: torch.device, step: Step) -> Step:
    """Record the kernels of a step once; returns what launches them all at once.

    Raises:
        UsageError: The step cannot be captured.
    """
    try:
        with _CAPTURING, torch.cuda.device(device):
            return _recorded(step)
    except RuntimeError as error:
        cause: BaseException = error
        while isinstance(cause.__context__, RuntimeError):  # ending a capture that has failed raises too
            cause = cause.__context__
        if isinstance(cause, torch.OutOfMemoryError):
            raise cause from None
        reason = str(cause).splitlines()[0]
        raise UsageError(f"a step of this model cannot become a CUDA graph ({reason}); use --sampler torch") from error


def _recorded(step: Step) -> Step:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    # A stream of its own has a cuBLAS workspace of its own, so graphs may run at once. Other threads may use the GPU.
    with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
        step()
    return graph.replay


def eager(step: Step) -> Step:
    """The step itself, where nothing can be captured."""
    return step


class StaticSlots(Slots):
    """Slots that show all of their columns, so that shapes stand still. The first `rows` of them are in use.

    Args:
        model: Evaluates the sequences.
        slots: S.
        width: Most tokens of a sequence; caches have a multiple of 64 columns, as attention on a GPU likes its masks.
    """

    def __init__(self, model: CausalNetwork, slots: int, width: int) -> None:
        super().__init__(model, slots, -(-width // _COLUMNS) * _COLUMNS)
        self.rows, self._last = slots, width - 1
        self._columns = torch.arange(self.width, device=model.device)

    def fill(self, slots: Tensor, prompts: Tensor) -> Tensor:
        """See `Slots.fill`."""
        logits = super().fill(slots, prompts)
        self._seen = self.width
        return logits

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token to each of the first `rows` slots, int64 [rows]; returns logits of the next, [rows, V]."""
        length = self.length[: self.rows]
        length.clamp_(max=self._last)  # slots whose sequence has ended
        hidden = self.model.step(tokens, length, self._columns <= length.unsqueeze(1), self)
        length += 1
        return self.model.logits(hidden)

    def keep(self, slots: Tensor) -> None:
        """Move these slots, int64 [n], to the front, and use only them."""
        self.rows = len(slots)
        for kept in (*(cache.unbind(0) for cache in self.caches), (self.length,)):
            for tensor in kept:
                tensor[: self.rows] = tensor[slots]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Called by the network: store keys and values [rows, heads, 1, size], return all columns."""
        cache, at = self.caches[layer_idx], (self._slot[: self.rows], slice(None), self.length[: self.rows])
        cache[0][at] = keys[:, :, 0].to(cache.dtype)
        cache[1][at] = values[:, :, 0].to(cache.dtype)
        return cache[0, : self.rows], cache[1, : self.rows]


class Program(nn.Module):
    """Slots, what is drawn in them, and one captured step for each number of rows that occurs.

    Weights of linear layers are read from a copy in the network's dtype, all others where they are. Results are those
    of autocast, which makes such copies for every token, and cannot inside a captured step.

    Args:
        model: The network to sample from.
        draws: Random numbers and records of more rows than a batch has, `greedy` included. They stay: `load` fills
            them anew. The last S rows are those of free slots.
        slots: S.
        width: Most tokens of a sequence.
        capture: Turns a step into its replay.

    Attributes:
        token: int64 [S], the last token of each slot.
        row: int64 [S], its trajectory.
        position: int64 [S], the position of the next token in its response.
        live: bool [S], whether its response goes on.
    """

    def __init__(self, model: CausalNetwork, draws: TokenDraws, slots: int, width: int, capture: Capture) -> None:
        super().__init__()
        assert draws.greedy is not None
        self.model, self.draws, self.slots = model, draws, StaticSlots(model, slots, width)
        self._greedy = draws.greedy
        self.token, self.row, self.position = torch.zeros(3, slots, dtype=torch.int64, device=model.device)
        self.live = torch.zeros(slots, dtype=torch.bool, device=model.device)
        self._capture, self._steps = capture, dict[int, Step]()
        self._sources = cast_weights(model)
        self._copies = {name: p.to(model.dtype) for name, p in self._sources.items()}

    def load(self, draws: TokenDraws, rows: int) -> None:
        """Begin a batch: its random numbers, empty records, today's weights, and `rows` free slots."""
        count, mine = draws.asked.rows, self.draws
        mine.uniforms[:count] = draws.uniforms
        self._greedy[:count] = False if draws.greedy is None else draws.greedy
        for kept, new in self._records(draws):
            kept[:count] = new
        for name, source in self._sources.items():
            self._copies[name].copy_(source)
        for cache in self.slots.caches:
            cache.zero_()
        self.slots.rows = rows
        self.slots.length.zero_()
        self.live.zero_()
        self.row.copy_(torch.arange(len(mine.tokens) - len(self.row), len(mine.tokens)))  # no two slots share one

    def store(self, draws: TokenDraws) -> None:
        """Copy what was drawn to the records of a batch."""
        for kept, new in self._records(draws):
            new.copy_(kept[: len(new)])

    @sdpa_kernel(ANY_SHAPE)
    def begin(self, slots: Tensor, rows: Tensor, prompts: Tensor) -> None:
        """Fill free slots, int64 [n], and draw the first token there.

        Args:
            slots: int64 [n].
            rows: int64 [n], the trajectories that begin.
            prompts: int64 [n, Lp], padded on the left.
        """
        first = self.slots.fill(slots, prompts)
        new = torch.zeros_like(rows)
        self.row[slots], self.position[slots] = rows, new + 1
        self.token[slots], self.live[slots] = self.draws.draw(first, rows, new, new == 0)

    def step(self) -> None:
        """Feed the last token of every slot in use and draw the next: a replay, captured at the first call."""
        rows = self.slots.rows
        if rows not in self._steps:
            state = (*self._state(), self.slots.length)
            kept = [tensor.clone() for tensor in state]
            self.live.zero_()  # steps before the capture record nothing
            self._steps[rows] = self._capture(self._swapped)
            for tensor, old in zip(state, kept, strict=True):
                tensor.copy_(old)
        self._steps[rows]()

    def keep(self, slots: Tensor) -> None:
        """Move these slots, int64 [n], to the front, and use only them."""
        self.slots.keep(slots)
        for tensor in (self.token, self.row, self.position, self.live):
            tensor[: len(slots)] = tensor[slots]

    def forward(self) -> None:
        """One step with the weights as they are; see `step`."""
        token, row, position, live = self._state()
        drawn, going_on = self.draws.draw(self.slots.step(token), row, position, live)
        token.copy_(drawn)
        live.copy_(going_on)
        position += 1

    def _swapped(self) -> None:
        device, dtype = self.model.device.type, self.model.dtype
        copies = {f"model.{name}": copy for name, copy in self._copies.items()}
        with torch.no_grad(), torch.autocast(device, dtype, dtype != torch.float32, cache_enabled=False):
            torch.func.functional_call(self, copies, (), tie_weights=False)

    def _state(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rows = self.slots.rows
        return self.token[:rows], self.row[:rows], self.position[:rows], self.live[:rows]

    def _records(self, draws: TokenDraws) -> list[tuple[Tensor, Tensor]]:
        """What is recorded, here and in a batch."""
        names = ("tokens", "logp", "entropy", "mask", *(["kept"] if self.draws.kept is not None else []))
        return [(getattr(self.draws, name), getattr(draws, name)) for name in names]


def cast_weights(model: CausalNetwork) -> dict[str, nn.Parameter]:
    """Parameters that autocast would cast at every use: those of linear layers that are not in the network's dtype."""
    linear = [f"{name}." for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    named = model.named_parameters(remove_duplicate=False)  # a head may be the embedding, which is read as it is
    return {n: p for n, p in named if p.dtype != model.dtype and f"{n.rpartition('.')[0]}." in linear}
