"""The parts of an update are found from small ones: on a clock that only counted work moves, exactly."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.running.pool import model_time
from vcpo_bench.bench.trajectories import Rollout, Trajectories

PROMPT, STEP, TOKEN, FIXED, POSITION, EOS = 0.5, 0.25, 0.0625, 4.0, 0.125, 1


class Work:
    """Samples responses that end after `ends` tokens, and learns; each takes as long as what it does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends: int = 0) -> None:
        self.now, self.ends, self.shapes = 0.0, ends, list[tuple[int, ...]]()
        monkeypatch.setattr(model_time, "process_time", lambda: self.now)

    def sample(self, asked: Draw) -> Rollout:
        length = min(asked.length, self.ends or asked.length)
        drawn = Rollout.empty(asked.rows, asked.length, EOS)
        drawn.mask[:, length:] = False
        drawn.responses[:] = 0
        if length == self.ends:
            drawn.responses[:, length - 1] = EOS
        self.now += len(asked.prompts) * PROMPT + (length - 1) * (STEP + asked.rows * TOKEN)
        return drawn

    def logp(self, batch: Trajectories) -> torch.Tensor:
        self.now += 1000.0
        return torch.zeros(batch.mask.shape)

    def update(self, batch: Trajectories, _: int) -> None:
        P, G, T = batch.mask.shape
        self.shapes.append((P, G, T))
        self.now += FIXED + POSITION * model_time._positions(P, G, 25, T, norms=False)


def sampling(monkeypatch: pytest.MonkeyPatch, longest: int, ends: int = 0) -> model_time._Sampling:
    policy: Any = Work(monkeypatch, ends)
    task: Any = SimpleNamespace(max_response=longest, eos=EOS)
    return model_time._time_sampling(policy, task, torch.zeros(8, 25, dtype=torch.int64))


@pytest.mark.parametrize(("longest", "ends", "length"), [(6, 0, 6), (66, 0, 66), (40, 17, 17), (1, 0, 1)])
def test_draws_of_any_size_follow_from_small_ones(
    monkeypatch: pytest.MonkeyPatch, longest: int, ends: int, length: int
) -> None:
    found = sampling(monkeypatch, longest, ends)
    assert (found.longest, found.mean) == (length, length)
    expected = 128 * PROMPT + (length - 1) * (STEP + 256 * TOKEN)
    assert found.seconds(128, 256) == pytest.approx(expected)


@pytest.mark.parametrize(("prompts", "tokens", "micro"), [(8, 66, 0), (8, 66, 2048), (8, 6, 0), (1, 2, 0), (2, 900, 0)])
def test_updates_of_any_size_follow_from_small_ones(
    monkeypatch: pytest.MonkeyPatch, prompts: int, tokens: int, micro: int
) -> None:
    learner: Any = Work(monkeypatch)
    config = CellConfig(method="reinforce", staleness=0, seed=0, model="m@0", responses=8, micro_tokens=micro)
    asked = torch.zeros(prompts, 25, dtype=torch.int64)
    found = model_time._time_updates(learner, config, asked, 25, tokens, norms=False)
    together = prompts * (25 + 8 * (tokens - 1)) if tokens <= 6 else prompts * 8 * (24 + tokens)
    assert found == pytest.approx(FIXED + POSITION * together * (4 / 3 if micro else 1))
    assert all(P * G * (24 + T) <= 8 * model_time._POSITIONS for P, G, T in learner.shapes)
