"""Cells whose learner is the in-process Tinker server of `fake_tinker`.

They have a task of the tiny policy, so that no tokenizer is needed: `tests/bench/learners/test_hf_tinker.py` has one.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_tinker import FakeServer
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.learner_job import learner_job
from vcpo_bench.bench.learners.catalog import LEARNERS
from vcpo_bench.bench.learners.tinker_api import service
from vcpo_bench.bench.learners.tinker_api.policy import ServedModel, TinkerPolicy
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.tasks import TokenTask, token_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories

TASK = "walk-eos"
URL = "http://someone:secret@server.test:8000"


class Line:
    """What `bounded_http.exchange` reaches.

    Attributes:
        requests: Method, path and body of each request.
        away: Whether nothing answers.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes | None]] = []
        self.away = False

    def exchange(self, address: Any, method: str, path: str, body: bytes | None, *rest: Any) -> tuple[int, bytes]:
        self.requests.append((method, path, body))
        if self.away:
            raise ConnectionRefusedError("nobody there")
        return 200, b"{}"


def connect(monkeypatch: pytest.MonkeyPatch, reduction: str = "mean", tokens: int = 0) -> tuple[FakeServer, Line]:
    """A new server, reachable under `URL`; cells open their policies there."""
    server, line = FakeServer(tokens or token_task(TASK).vocab_size, reduction), Line()
    monkeypatch.setitem(sys.modules, "tinker", server.module())
    monkeypatch.setattr(service, "exchange", line.exchange)
    monkeypatch.setattr(service, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setenv(service.URL_VARIABLE, URL)
    monkeypatch.delenv(service.KEY_VARIABLE, raising=False)
    monkeypatch.setattr("vcpo_bench.bench.training.build.open_policy", open_policy)
    monkeypatch.setattr(type(token_task(TASK)), "reward", chance)
    return server, line


def chance(task: TokenTask, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
    """[B] rewards of 0 to 1 that a random policy gets too: without any its weights would never move."""
    return (responses * mask).sum(1).double() % 5 / 4


def config(method: str = "clip", staleness: int = 0, **changes: Any) -> CellConfig:
    settings = {"task": TASK, "prompts": 3, "responses": 4, "steps": 6, "eval_every": 100, "lr": 1e-2, "seed": 0}
    return CellConfig(method=method, staleness=staleness, **(settings | {"learner": "tinker"} | changes))


def open_policy(cell: CellConfig, *_: Any) -> TinkerPolicy:
    """What `TinkerLearner.open_policy` makes, without a tokenizer."""
    kind, job = LEARNERS.parse(cell.learner), learner_job(cell)
    kind.check(job)
    model = ServedModel("models/qwen3", -1, kind.rank, kind.reduction, job.optimizer, cell.weight_decay)  # type: ignore[attr-defined, arg-type]
    return TinkerPolicy(service.Service(URL), model)


def trainer(method: str = "clip", staleness: int = 0, **changes: Any) -> Trainer:
    return build_trainer(config(method, staleness, **changes))


def run(cell: Any, out: Path) -> tuple[str, dict[str, Any]]:
    """Train a cell through the store; its status and what is recorded of it."""
    out.mkdir(parents=True, exist_ok=True)
    status = run_cell(PlannedCell(cell, cell.key(1), False, 1.0, cell.steps), out, 0, lambda *_: None)
    return status, json.loads((out / cell.key(1) / "cell.json").read_text())


def random_rewards(batch: Trajectories) -> Trajectories:
    """The same batch with rewards of both kinds in each group."""
    generator = torch.Generator().manual_seed(batch.index)
    reward = torch.randint(0, 2, batch.reward.shape, generator=generator).double()
    reward[:, :2] = torch.tensor([0.0, 1.0])
    return Trajectories(batch.index, **(batch.tensors() | {"reward": reward}))
