"""Score norms without ever holding all logits, against the head whose logits are all there.

    python tests/benchmarks/chunked_head.py     # a few minutes on one thread

Prints the table of docs/benchmarks/score_norms.md: one update with norms and book-keeping of a Llama with 32,768
tokens, and of its tied head alone; both ways in turns, the fastest turn of each, by processor time. Memory is the most
that the update's tensors hold at once.
"""

import sys
from pathlib import Path
from time import process_time

import torch
from score_norms import LlamaTask
from torch import Tensor

from vcpo_bench.bench.devices import keep_freed_memory
from vcpo_bench.bench.score_norms import ChunkedHead, ScoreNorms

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
from allocations import Allocations

TURNS = 3


class Large(LlamaTask):
    """A tied Llama of 20 M parameters, 8 trajectories of 128 tokens: logits of 128 MiB."""

    rows, tokens, vocabulary = 8, 128, 32768

    def __init__(self, chunked: bool, layers: int, chunk_bytes: int) -> None:
        super().__init__()
        self.layers = self.layers[:layers]
        self.head.weight = self.embedding.weight
        torch.nn.init.normal_(self.embedding.weight, std=0.02)
        self.chunked = ChunkedHead(self.head, chunk_bytes=chunk_bytes) if chunked else None

    def forward(self, tokens: Tensor) -> Tensor:
        if self.chunked is None:
            return super().forward(tokens)
        x = self.embedding(tokens[:, :-1])
        for layer in self.layers:
            x = layer(x, *self.rotary)
        targets = tokens[:, 1:]
        return self.chunked.statistics(self.norm(x), targets, torch.ones_like(targets, dtype=torch.bool)).logp


def update(task: Large, norms: ScoreNorms, batch: tuple[Tensor, ...]) -> Tensor:
    """One update but for the optimizer's part; the squared norms."""
    with norms.record():
        logp = task(*batch)
    squared = norms.squared_norms(logp)
    norms.assemble(torch.linspace(-1, 1, task.rows))
    norms.release()
    task.zero_grad()
    return squared


def main() -> None:
    """See the module."""
    keep_freed_memory()
    torch.set_num_threads(1)
    print("| | dense s | chunked s | ratio | dense MiB | chunked MiB |\n|---|---:|---:|---:|---:|---:|")
    for name, layers, chunk_bytes in (("whole update", 8, 2**25), ("head alone", 0, 2**25)):
        torch.manual_seed(0)
        tasks = [Large(chunked, layers, chunk_bytes) for chunked in (False, True)]
        tasks[1].load_state_dict(tasks[0].state_dict())
        batch, all_norms = tasks[0].batch(), [ScoreNorms(task) for task in tasks]
        times: list[list[float]] = [[], []]
        for _ in range(TURNS + 1):
            found = []
            for taken, task, norms in zip(times, tasks, all_norms, strict=True):
                begin = process_time()
                found.append(update(task, norms, batch))
                taken.append(process_time() - begin)
            torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=0)
        peaks = []
        for task, norms in zip(tasks, all_norms, strict=True):
            with Allocations() as allocations:
                update(task, norms, batch)
            peaks.append(allocations.peak / 2**20)
        dense, chunked = (min(taken[1:]) for taken in times)
        print(f"| {name} | {dense:.2f} | {chunked:.2f} | {chunked / dense:.2f} | {peaks[0]:.0f} | {peaks[1]:.0f} |")


if __name__ == "__main__":
    main()
