"""Step rules against their formulas: distances of weights, lengths and divergences given by hand."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, MissingEvidence, parse_method

Make = Callable[..., Batch]


def scales(text: str, batches: Iterable[Batch]) -> list[float]:
    """The scale of each update in turn; the state is carried on."""
    method, state, found = parse_method(text), {}, []
    for batch in batches:
        update = method(batch.with_state(state))
        state = dict(update.state)
        found.append(float(update.step_scale))
    return found


@pytest.fixture
def plain(make_rows: Make) -> Batch:
    return make_rows([[0.0, 0.0], [0.0, 0.0]], [1.0, -1.0], now=8)


def moved(batch: Batch, distances: list[float], norm: float) -> Batch:
    distance = torch.tensor([distances], dtype=torch.float64)
    return replace(batch, parameter_distance=distance, update_norm=norm)


# -- gap-aware ---------------------------------------------------------------------------------------------------------


def test_weights_that_moved_straight_on_for_k_updates_give_inverse_lag(plain: Batch) -> None:
    k, step = 7, 0.03
    assert scales("gap-aware", [moved(plain, [k * step, k * step], step)]) == pytest.approx([1 / (1 + k)])
    assert scales("gap-aware", [moved(plain, [math.sqrt(k) * step] * 2, step)]) == pytest.approx([1 / (1 + k**0.5)])


def test_the_gap_is_the_mean_or_the_largest_over_rows_with_tokens(plain: Batch) -> None:
    batch = moved(plain, [0.1, 0.3], 0.1)
    assert scales("gap-aware", [batch]) == pytest.approx([1 / 3])
    assert scales("gap-aware(of=max)", [batch]) == pytest.approx([1 / 4])
    batch.mask[0, 1] = False
    assert scales("gap-aware(of=max)", [batch]) == pytest.approx([1 / 2])


def test_the_mean_update_counts_steps_as_they_were_applied(plain: Batch) -> None:
    """The second update's norm at full rate is 0.2; the first was applied at 1/2, so that it moved by 0.1."""
    found = scales("gap-aware(rate=1)", [moved(plain, [0.1, 0.1], 0.1), moved(plain, [0.3, 0.3], 0.2)])
    assert found == pytest.approx([1 / 2, 0.1 / (0.1 + 0.3)])
    slow = scales("gap-aware(rate=0.25)", [moved(plain, [0.1, 0.1], 0.1), moved(plain, [0.3, 0.3], 0.6)])
    mean = 0.75 * 0.1 + 0.25 * 0.3
    assert slow[1] == pytest.approx(mean / (mean + 0.3))


def test_before_the_first_update_the_step_is_whole(plain: Batch) -> None:
    for text in ("gap-aware", "drift-cap", "update-norm"):
        assert scales(text, [moved(plain, [0.0, 0.0], 0.0)]) == [1.0]


@pytest.mark.parametrize("text", ["gap-aware", "drift-cap", "update-norm"])
def test_a_batch_without_the_distances_is_refused(text: str, plain: Batch) -> None:
    with pytest.raises(MissingEvidence, match="the batch does not carry it"):
        parse_method(text)(plain)


# -- DC-ASGD -----------------------------------------------------------------------------------------------------------


def test_dc_asgd_adds_the_square_times_the_drift() -> None:
    compensate = parse_method("clip+dc-asgd(strength=0.5)").compensate
    assert compensate is not None
    found = compensate(torch.tensor([1.0, -2.0, 0.0]), torch.tensor([0.1, 0.1, 9.0]))
    assert found.tolist() == pytest.approx([1.05, -1.8, 0.0])
    adaptive = parse_method("clip+dc-asgd(strength=0.5,rule=adaptive)").compensate
    assert adaptive is not None
    found = adaptive(torch.tensor([1.0, -2.0, 0.0]), torch.tensor([0.1, 0.1, 9.0]))
    assert found.tolist() == pytest.approx([1.05, -1.9, 0.0])
    assert parse_method("clip").compensate is None


# -- length surge ------------------------------------------------------------------------------------------------------


def long(batch: Batch, tokens: int) -> Batch:
    return replace(batch, mask=(torch.arange(batch.mask.shape[-1]) < tokens).expand(batch.mask.shape))


def test_the_step_is_halved_at_intervals_set_by_the_surge(make_rows: Make) -> None:
    batch = make_rows([[0.0] * 8] * 2, [1.0, -1.0])
    short, surge = long(batch, 2), long(batch, 7)
    lengths = [short] * 4 + [surge] * 40
    found = scales("length-surge(window=3,stretch=2,floor=0.2)", lengths)  # surge at update 4: halved every 8
    assert found[:12] == [1.0] * 12
    assert found[12:20] == [0.5] * 8
    assert found[20:28] == [0.25] * 8
    assert found[28:] == [0.2] * 16


def test_no_surge_within_the_window_or_at_the_threshold(make_rows: Make) -> None:
    batch = make_rows([[0.0] * 8] * 2, [1.0, -1.0])
    assert set(scales("length-surge(window=3)", [long(batch, 2)] * 2 + [long(batch, 8)] * 60)) == {1.0}
    assert set(scales("length-surge(window=3)", [long(batch, 2)] * 3 + [long(batch, 6)] * 60)) == {1.0}


# -- drift cap, update norm --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [(0, 1.0 / (8 * 0.5)), (7, 0.3 / 0.5), (8, 0.3 / 0.5)],  # lag 8: the local bound; 1 and 0: the horizon's
)
def test_the_tighter_of_two_bounds_holds(plain: Batch, version: int, expected: float) -> None:
    batch = moved(replace(plain, version=torch.full_like(plain.version, version)), [0.0, 0.0], 0.5)
    assert scales("drift-cap(local=1,horizon=30,updates=100)", [batch]) == pytest.approx([expected])
    assert scales("drift-cap(local=100,horizon=100,updates=10)", [batch]) == [1.0]


def test_a_step_beyond_the_radius_is_shortened_to_it(plain: Batch) -> None:
    assert scales("update-norm(radius=0.1)", [moved(plain, [0.0, 0.0], norm) for norm in (0.4, 0.05)]) == [0.25, 1.0]


# -- KL ----------------------------------------------------------------------------------------------------------------


def test_the_scale_follows_the_divergence_and_remembers(make_rows: Make) -> None:
    def at(log: float) -> Batch:
        return make_rows([[log, log], [0.0, 0.0]], [1.0, -1.0])

    kl = (math.expm1(0.5) - 0.5) / 2  # half of the tokens
    far, near, between = at(0.5), at(0.0), at(0.5)
    text = f"kl-adaptive(target={kl / 2.1},factor=2,floor=0.2)"
    assert scales(text, [near, far, far, far, near, near, near]) == [1.0, 0.5, 0.25, 0.2, 0.4, 0.8, 1.0]
    assert scales(f"kl-adaptive(target={kl})", [between] * 3) == [1.0] * 3
