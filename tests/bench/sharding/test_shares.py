"""How trajectories are dealt out to processes: each once, evenly, in equally many passes."""

import pytest
import torch

from vcpo_bench.bench.sharding.shares import evened, own_pieces
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError

P, G, L, T = 4, 3, 2, 9


def batch(seed: int) -> Trajectories:
    draws = torch.Generator().manual_seed(seed)
    mask = torch.arange(T) < torch.randint(1, T + 1, (P, G, 1), generator=draws)
    numbers = torch.arange(P * G).view(P, G)
    tokens = numbers.unsqueeze(2).expand(P, G, T)
    return Trajectories(
        0,
        torch.arange(P * L).view(P, L),
        tokens,
        torch.zeros(P, G, T),
        mask,
        numbers.double(),
        torch.zeros_like(tokens),
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("count", "tokens"), [(1, 0), (2, 0), (3, 14), (4, 11), (6, 30)])
def test_every_trajectory_is_dealt_once_in_as_many_passes(seed: int, count: int, tokens: int) -> None:
    whole = batch(seed)
    dealt = [own_pieces(whole, number, count, tokens) for number in range(count)]
    rows = [torch.cat([torch.as_tensor(piece.rows) for piece in pieces]) for pieces in dealt]
    assert sorted(torch.cat(rows).tolist()) == list(range(P * G))
    assert {len(each) for each in rows} == {P * G // count}
    assert len({len(pieces) for pieces in dealt}) == 1, "a process with fewer passes would leave the others waiting"
    for piece in (piece for pieces in dealt for piece in pieces):
        assert len(piece.part.reward) > 0
        assert piece.part.reward.flatten().tolist() == torch.as_tensor(piece.rows).tolist()
        longest = L + int(piece.part.mask.sum(-1).max())
        assert not tokens or len(piece.part.reward) == 1 or len(piece.part.reward) * longest <= tokens


def test_work_is_about_even() -> None:
    whole = batch(1)
    lengths = whole.mask.sum(-1).flatten()
    work = [sum(int(lengths[piece.rows].sum()) for piece in own_pieces(whole, number, 2)) for number in range(2)]
    assert abs(work[0] - work[1]) <= T


def test_passes_are_halved_until_there_are_enough() -> None:
    found = evened([torch.arange(4), torch.arange(4, 5)], 4)
    assert [each.tolist() for each in found] == [[0], [1], [2, 3], [4]]


def test_what_cannot_be_divided_is_said() -> None:
    with pytest.raises(UsageError, match=r"^--shards 5: an update of 12 trajectories cannot be divided by 5$"):
        own_pieces(batch(0), 0, 5)
