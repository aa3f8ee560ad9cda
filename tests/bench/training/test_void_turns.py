"""Which episodes have a void turn, as the learner sees them, and cells that leave them out of the loss."""

from collections.abc import Sequence
from contextlib import closing

import pytest
import torch
from echo_environment import BAD, CALL, END, STOP, Echo

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.evidence import with_void_turn
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError


def played(said: Sequence[int], length: int) -> Trajectories:
    """The trajectory of a policy that says these tokens, of which the last is repeated."""
    episode, own = Episode(Echo(aside=(8,)), [], length), list[bool]()
    while not episode.ended:
        own.append(not episode.observes)
        if episode.observes:
            episode.observe()
        else:
            episode.say(said[min(sum(own), len(said)) - 1])
    mask = torch.tensor(own + [False] * (length - len(own))).view(1, 1, length)
    nothing = torch.zeros(1, 1, length)
    return Trajectories(
        0,
        torch.zeros(1, 1, dtype=torch.int64),
        nothing.long(),
        nothing,
        mask,
        torch.zeros(1, 1),
        nothing.long(),
        episodes=torch.tensor(episode.facts()).view(1, 1, -1),
    )


@pytest.mark.parametrize(
    ("said", "length", "void"),
    [
        ([STOP, END], 9, False),
        ([CALL, END, BAD, END, STOP, END], 20, False),
        ([5, END, STOP, END], 20, True),
        ([CALL, END, 5, END, STOP, END], 20, True),
        ([CALL, END] * 3, 20, False),  # out of turns
        ([5], 4, True),  # cut off in its first turn
        ([CALL, END, 5], 8, True),  # and in its second
        ([CALL, END, 5], 4, False),  # no room for what the call printed
        ([CALL, END, 5], 2, False),  # the same, at the very end
    ],
)
def test_which_episodes_have_one(said: Sequence[int], length: int, void: bool) -> None:
    found = with_void_turn(played(said, length))
    assert found is not None
    assert found.tolist() == [[void]]


def config(task: str, method: str) -> CellConfig:
    return CellConfig(task=task, method=method, staleness=0, seed=0, steps=2, prompts=4, responses=4, eval_every=9)


def test_a_cell_leaves_them_out() -> None:
    with closing(build_trainer(config("guess", "clip+void-turns"))) as trainer:
        while not trainer.status:
            trainer.advance()
        assert trainer.status == "completed"


def test_a_task_without_turns_is_refused() -> None:
    with pytest.raises(UsageError, match="chain has no environment, hence no turns; drop void-turns"):
        build_trainer(config("chain", "clip+void-turns"))
    with pytest.raises(UsageError, match="chain has no environment, hence no turns; drop void-turns"):
        plan_grid(GridSpec(("clip+void-turns",), (0,), (0,), ("guess", "chain"), controls=False))
