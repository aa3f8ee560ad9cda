"""The sentences of the page on asynchronous training are what its tables say."""

import numpy as np
import pytest
from page_prose import BENCHMARKS, prose, table

PAGE = BENCHMARKS / "async.md"
TEXT = prose(PAGE)
CELLS = [(method, task) for method in ("clip", "vcpo") for task in ("chain", "walk-eos")]
ONE, SPLIT, COLOCATED = "one process", "(a) split synchronous", "(b) colocated, data-parallel"
K1, K4 = "async, k = 1", "async, k = 4"


def rows(head: str) -> list[list[str]]:
    """The rows of the table whose head starts so."""
    lines = PAGE.read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(head)) + 2
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def numbers(cell: str) -> np.ndarray:
    return np.array([float(one) for one in cell.split(",")])


REAL = {(*tuple(row[0].split(", ")), row[1]): [numbers(cell) for cell in row[2:]] for row in rows("| method, task |")}
"""Per method, task and way: updates per second [5], of (a) [1], updates to target [5], seconds to target [5]."""


def speed(method: str, task: str, way: str, over: str) -> float:
    """Median over seeds of the ratio of updates per second."""
    return float(np.median(REAL[method, task, way][0] / REAL[method, task, over][0]))


def test_against_the_split_synchronous_way() -> None:
    for (method, task, way), found in REAL.items():
        assert speed(method, task, way, SPLIT) == pytest.approx(found[1][0], abs=0.011)
    clip = [REAL["clip", "chain", way][1][0] for way in (K1, K4)]
    others = [REAL[(*cell, way)][1][0] for cell in CELLS[1:] for way in (K1, K4)]
    assert {f"{one:.1f}" for one in clip} == {"1.7"}
    assert (
        f"1.7 times for `clip` on `chain` (the aim was 1.6), {min(others):.1f} to {max(others):.1f} elsewhere" in TEXT
    )
    alone = [REAL[(*cell, ONE)][1][0] for cell in CELLS]
    assert f"(one process is {min(alone):.2f} to {max(alone):.2f} times (a))" in TEXT


def test_against_the_colocated_way_and_one_process() -> None:
    to_b = [f"{speed(*cell, K1, COLOCATED):.2f}" for cell in CELLS]
    said = "`clip` on `chain` {} times its updates per second, on `walk-eos` {}; `vcpo` {} on `chain`, {} on `walk-eos`"
    assert said.format(*to_b) in TEXT
    scaling = [f"{speed(*CELLS[place], COLOCATED, ONE):.2f}" for place in (0, 2, 1, 3)]
    said = "it is {} times as fast as one process on one core for `clip` on `chain`, {} for `vcpo`"
    assert said.format(*scaling[:2]) in TEXT
    assert "{} and {} on `walk-eos`, since half".format(*scaling[2:]) in TEXT
    one = [f"{speed(*cell, K1, ONE):.2f}" for cell in CELLS]
    assert "gains {} and {} for `clip` (`chain`, `walk-eos`), {} and {} for `vcpo` (k = 1)".format(*one) in TEXT


def test_to_the_target() -> None:
    seconds = {cell: [f"{REAL[(*cell, way)][3].mean():.1f}" for way in (K1, K4, COLOCATED)] for cell in CELLS}
    shown = ["{} and {} against {}".format(*seconds[cell]) for cell in CELLS]
    assert "`clip` on `chain` {}, on `walk-eos` {}; `vcpo` on `chain` {}, on `walk-eos` {}.".format(*shown) in TEXT
    updates = [REAL["vcpo", "walk-eos", way][2].mean() for way in (K4, COLOCATED)]
    assert "at k = 4 `vcpo` needs {:.0f} updates there instead of {:.0f}".format(*updates) in TEXT
    assert f"needed {updates[0] - updates[1]:.0f} more updates on `walk-eos`" in TEXT
    alone = ", ".join(f"{REAL[(*cell, ONE)][3].mean():.1f}" for cell in CELLS)
    assert f"process on one core ({alone} seconds)" in TEXT
    assert all(REAL[(*cell, way)][3].mean() < REAL[(*cell, ONE)][3].mean() for cell in CELLS for way in (K1, K4))


def test_the_crossover() -> None:
    head = ["times", "(a)", "(b)", *(f"async, k = {k}" for k in (1, 2, 4, 8))]
    found = {name: np.array([float(cell) for cell in cells]) for name, cells in table(PAGE, head).items()}
    stragglers = "5% stragglers, 10x"
    varying = ["spread 0.25", "spread 0.5", "spread 1", stragglers]
    over = {name: found[name][1] / found[name][2:] for name in varying}
    assert f"({over[stragglers][1]:.1f} times under stragglers, {over['spread 0.5'][1]:.1f} at a spread of 0.5)" in TEXT
    at_4 = [over[name][2] for name in varying]
    assert f"at k = 4 by {min(at_4):.1f} to {max(at_4):.1f}, at k = 8 by {over[stragglers][3]:.1f} under" in TEXT
    assert all(over[name][0] < 1 for name in varying), "slower at k = 1 where times vary"
    most = max(REAL[(*cell, COLOCATED)][1][0] for cell in CELLS)
    assert f"at the {most:.2f} times (a) that is the most measured above" in TEXT
    factor = float(f"{2 / most:.2f}")
    assert f"everything in its column is {factor:.2f} times as large" in TEXT
    lead = {name: factor * cells[1] / cells[2] - 1 for name, cells in found.items() if "dropped" not in name}
    assert f"by {lead[stragglers]:.0%} (stragglers) to".replace("%", "") in TEXT
    assert f"to {lead['constant']:.0%} (constant)".replace("%", " percent") in TEXT
    assert min(lead.values()) == lead[stragglers]


def test_what_lag_costs() -> None:
    found = {(row[0], row[1]): [numbers(cell) for cell in row[2:]] for row in rows("| task, times | k |")}
    chain, walk = "chain, 5% stragglers, 10x", "walk-eos, by length"
    synchronous = {task: found[task, "0, (a)"][0].mean() for task in (chain, walk)}
    at_4 = {task: found[task, "4"][0].mean() - synchronous[task] for task in (chain, walk)}
    assert f"a mean lag of {found[chain, '4'][3][0]:.1f} costs {at_4[chain]:.0f} of {synchronous[chain]:.0f}" in TEXT
    assert f"on `walk-eos` {at_4[walk]:.0f} of {synchronous[walk]:.0f}" in TEXT
    assert all(found[task, "1"][0].mean() <= synchronous[task] for task in (chain, walk)), "lag 1 costs none"
    times = [found[chain, k][1].mean() for k in ("0, (a)", "0, (b)", "1", "4")]
    said = "(a) {:.0f}, (b) {:.0f}, asynchronous {:.0f} at k = 1 and {:.0f} at k = 4"
    assert said.format(*times) in TEXT
    dropped = [found[f"{chain}, dropped", k][1].mean() for k in ("1", "4")]
    assert "with late groups dropped {:.0f} and {:.0f}.".format(*dropped) in TEXT
    assert f"and k = 4 wins by {times[1] / times[3]:.1f}" in TEXT


def test_what_dropping_biases() -> None:
    spread = table(PAGE, ["options", "dropped", "length trained, dropped", "reward trained, dropped"])["spread=0.7"]
    length, reward = numbers(spread[1]), numbers(spread[2])
    said = f"what is dropped is {length[1] - length[0]:.1f} tokens longer and {reward[0] - reward[1]:.2f} worse"
    assert said in TEXT
