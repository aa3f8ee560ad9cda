"""The sampler process: samples tickets under the newest weights, and delivers each when its service time is over.

`SamplerHandle` starts it as `python -m`, with the descriptors of a pipe and of the shared weights. It ends with the
learner's process, which closes the pipe.
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
from vcpo_bench.bench.feeding.sampler_handle import Delivery, SamplerSetup, numpy_arrays
from vcpo_bench.bench.feeding.shared_weights import SharedWeights
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler, service_time
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.naming.plugins import load_plugin

BEAT_SECONDS = 0.1


class SamplerProcess:
    """Samples the tickets it is sent until the pipe closes.

    Args:
        pipe: Connection to the learner.
        descriptor: File descriptor of the shared weights.
    """

    def __init__(self, pipe: Connection, descriptor: int) -> None:
        self.pipe = pipe
        self.setup: SamplerSetup = pipe.recv()
        for plugin in self.setup.plugins:
            load_plugin(plugin)
        config = self.setup.config
        task = open_task(config, self.setup.start)
        self.policy = open_policy(config, task, self.setup.start, self.setup.device)
        self.weights = SharedWeights(descriptor, sum(p.numel() for p in self.policy.trainable()))
        external = open_sampler(config, task, self.policy)
        needs = config.parts.method.needs
        self.published = PublishedPolicy.under(config.parts.regime, self.policy, config.seed, external, needs=needs)
        self.sampler = TicketSampler(config, task, self.published)
        self.shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
        self.pending: deque[int] = deque()
        self.in_flight: list[tuple[float, int, Delivery]] = []
        self.busy, self._then = 0.0, time.monotonic()

    def serve(self) -> None:
        """Work until the learner closes the pipe."""
        while True:
            self._count()
            if self.pipe.poll(self._patience()):
                verb, tickets = self.pipe.recv()
                if verb == "start":
                    self.pending.extend(tickets)
                else:
                    self.pending = deque(t for t in self.pending if t not in tickets)
                    self.in_flight = [each for each in self.in_flight if each[1] not in tickets]
                    heapq.heapify(self.in_flight)
                continue
            self._begin()
            self._deliver()

    def _count(self) -> None:
        """Add to the busy time the share of slots in use, while service times are emulated, and send a heartbeat."""
        now = time.monotonic()
        self.busy += (now - self._then) * len(self.in_flight) / self.setup.slots
        self._then = now
        self.weights.beat(self.busy)

    def _patience(self) -> float:
        if self.pending and len(self.in_flight) < self.setup.slots:
            return 0.0
        soonest = self.in_flight[0][0] - time.monotonic() if self.in_flight else BEAT_SECONDS
        return min(max(soonest, 0.0), BEAT_SECONDS)

    def _begin(self) -> None:
        """Sample as many tickets as there are free slots, under the newest weights."""
        count = min(self.setup.slots - len(self.in_flight), len(self.pending))
        if count <= 0:
            return
        tickets = [self.pending.popleft() for _ in range(count)]
        started = time.monotonic()
        version = self.weights.read(self.policy)
        self.published.publish(version)
        self.pipe.send([("begun", tickets, version)])
        groups = self.sampler.run(tickets, version)
        for ticket, group in groups.items():
            due = started + service_time(self.setup.times, self.shape, ticket, group)
            result = Delivery(ticket, version, started, due, numpy_arrays(group.tensors()))
            heapq.heappush(self.in_flight, (due, ticket, result))
        if not self.setup.times.sampler:
            self.busy += (time.monotonic() - started) * count / self.setup.slots
            self._then = time.monotonic()

    def _deliver(self) -> None:
        now, done = time.monotonic(), []
        while self.in_flight and self.in_flight[0][0] <= now:
            result = heapq.heappop(self.in_flight)[2]
            done.append(result._replace(finished=now))
        if done:
            self.pipe.send(done)


def main() -> None:
    """Entry point of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    torch.set_num_threads(1)
    pipe = Connection(int(sys.argv[1]))
    try:
        SamplerProcess(pipe, int(sys.argv[2])).serve()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the learner is gone: nothing is left to clean up for


if __name__ == "__main__":
    main()
