"""The sampler's process: samples tickets under the newest weights, delivers each when its service time is over.

Started by `child.Child` as `python -m`, with the descriptors of a pipe and of the shared weights. It ends when the
learner's process does: the pipe is closed then.
"""

from __future__ import annotations

import heapq
import os
import signal
import sys
import time
from collections import deque
from multiprocessing.connection import Connection

import torch

from vcpo_bench.bench.cells.opening import open_policy, open_sampler, open_task
from vcpo_bench.bench.feeding.sampler_handle import Result, Setup, numpy_arrays
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.feeding.ticket_sampler import GroupSampler
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.samplers.published import Engine

BEAT_SECONDS = 0.1


class Server:
    """Samples what it is told to until the pipe closes.

    Args:
        pipe: To the learner.
        descriptor: Of the shared weights.
    """

    def __init__(self, pipe: Connection, descriptor: int) -> None:
        self.pipe = pipe
        self.setup: Setup = pipe.recv()
        config = self.setup.config
        task = open_task(config, self.setup.start)
        self.policy = open_policy(config, task, self.setup.start, self.setup.device)
        self.weights = SharedWeights(descriptor, sum(p.numel() for p in self.policy.trainable()))
        self.engine = Engine(self.policy, 1, self.setup.noise, config.seed, open_sampler(config, task, self.policy))
        self.sampler = GroupSampler(config, task, self.engine)
        self.shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
        self.pending: deque[int] = deque()
        self.flying: list[tuple[float, int, Result]] = []
        self.busy, self._then = 0.0, time.monotonic()

    def serve(self) -> None:
        """Work until the learner is gone."""
        while True:
            self._count()
            if self.pipe.poll(self._patience()):
                verb, tickets = self.pipe.recv()
                if verb == "start":
                    self.pending.extend(tickets)
                else:
                    self.pending = deque(t for t in self.pending if t not in tickets)
                    self.flying = [each for each in self.flying if each[1] not in tickets]
                    heapq.heapify(self.flying)
                continue
            self._begin()
            self._deliver()

    def _count(self) -> None:
        """Time worked: the share of slots in use, while service times are emulated."""
        now = time.monotonic()
        self.busy += (now - self._then) * len(self.flying) / self.setup.slots
        self._then = now
        self.weights.beat(self.busy)

    def _patience(self) -> float:
        if self.pending and len(self.flying) < self.setup.slots:
            return 0.0
        soonest = self.flying[0][0] - time.monotonic() if self.flying else BEAT_SECONDS
        return min(max(soonest, 0.0), BEAT_SECONDS)

    def _begin(self) -> None:
        """Sample as many tickets as there are free slots, under the newest weights."""
        count = min(self.setup.slots - len(self.flying), len(self.pending))
        if count <= 0:
            return
        tickets = [self.pending.popleft() for _ in range(count)]
        started = time.monotonic()
        version = self.weights.read(self.policy)
        self.engine.publish(0)
        self.pipe.send([("begun", tickets, version)])
        groups = self.sampler.run(tickets, version)
        for ticket, group in groups.items():
            length = int(group.mask.sum(-1).max())
            due = started + self.setup.times.group(self.shape, ticket, length)
            result = Result(ticket, version, started, due, numpy_arrays(group.tensors()))
            heapq.heappush(self.flying, (due, ticket, result))
        if not self.setup.times.sampler:
            self.busy += (time.monotonic() - started) * count / self.setup.slots
            self._then = time.monotonic()

    def _deliver(self) -> None:
        now, done = time.monotonic(), []
        while self.flying and self.flying[0][0] <= now:
            result = heapq.heappop(self.flying)[2]
            done.append(result._replace(finished=now))
        if done:
            self.pipe.send(done)


def main() -> None:
    """Entry point of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    torch.set_num_threads(1)
    pipe = Connection(int(sys.argv[1]))
    try:
        Server(pipe, int(sys.argv[2])).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the learner is gone: nobody waits for anything to be tidied up


if __name__ == "__main__":
    main()
