"""The sentences of the page on regimes are what its tables say."""

import re

import pytest
from page_prose import BENCHMARKS, prose, table

PAGE = BENCHMARKS / "regimes.md"
TEXT = prose(PAGE)
METHODS = ["vcpo", "clip", "vespo", "tis"]
TASKS = ["chain", "walk"]
FOUND = {task: table(PAGE, [task, "lag mean, max", *METHODS]) for task in TASKS}
REGIMES = list(FOUND["walk"])


def cell(task: str, regime: str, method: str) -> tuple[float, float, float, float]:
    """Mean, lowest, highest reward and median ESS."""
    text = FOUND[task][regime][1 + METHODS.index(method)]
    shown = re.fullmatch(r"(\S+) \[(\S+), (\S+)\] \((\S+)\)", text)
    assert shown
    mean, low, high, ess = (float(one) for one in shown.groups())
    return mean, low, high, ess


WALK = {(regime, method): cell("walk", regime, method)[0] for regime in REGIMES for method in METHODS}


def spread(values: list[float]) -> float:
    return max(values) - min(values)


def test_how_much_regime_and_method_move() -> None:
    of_method = [spread([WALK[regime, method] for regime in REGIMES]) for method in METHODS]
    of_regime = [spread([WALK[regime, method] for method in METHODS]) for regime in REGIMES]
    said = "moves the reward of a method by {:.2f} to {:.2f}, and the method that of a regime by {:.2f} to {:.2f}"
    assert said.format(min(of_method), max(of_method), min(of_regime), max(of_regime)) in TEXT


@pytest.mark.parametrize("method", METHODS)
def test_fifo_is_lowest_on_walk(method: str) -> None:
    for part in (0, 3):
        values = {regime: cell("walk", regime, method)[part] for regime in REGIMES}
        assert min(values, key=lambda regime: values[regime]) == "fifo"


def test_lags_and_rewards_named() -> None:
    lags = {regime: [float(one) for one in FOUND["walk"][regime][0].split(", ")] for regime in REGIMES}
    means = [lags[regime][0] for regime in REGIMES if regime != "fifo"]
    assert f"have a mean lag of {min(means):.0f} to {max(means):.0f}" in TEXT
    clip = [WALK[regime, "clip"] for regime in REGIMES if regime != "fifo"]
    assert f"({WALK['fifo', 'clip']:.2f} against {min(clip):.2f} to {max(clip):.2f})" in TEXT
    vcpo = [WALK[regime, "vcpo"] for regime in REGIMES]
    assert f"`vcpo` goes from {min(vcpo):.2f} to {max(vcpo):.2f}" in TEXT
    assert f"have the same mean ({lags['minibatch'][0]} and {lags['random'][0]})" in TEXT
    first, second = (FOUND["walk"][regime][1].rsplit(" (", 1)[0] for regime in ("minibatch", "random"))
    assert f"yet `vcpo` is at {first} and {second}," in TEXT
    assert f"`async` realized at most {lags['async'][1]:.0f} of the 15 updates" in TEXT


def test_who_leads_on_walk() -> None:
    leaders = {regime: max(METHODS, key=lambda method: WALK[regime, method]) for regime in REGIMES}
    assert leaders == dict(zip(REGIMES, ["tis", "tis", "tis", "vcpo", "vcpo", "vcpo"], strict=True))
    apart = []
    for regime, leader in leaders.items():
        other = "vcpo" if leader == "tis" else "tis"
        if cell("walk", regime, leader)[1] > cell("walk", regime, other)[2]:
            apart.append(regime)
    assert apart == ["random"]


def test_chain() -> None:
    vcpo = [cell("chain", regime, "vcpo")[0] for regime in REGIMES]
    assert f"`vcpo` is at {min(vcpo):.2f} to {max(vcpo):.2f} in every regime" in TEXT
    others = max(spread([cell("chain", regime, method)[0] for regime in REGIMES]) for method in METHODS[1:])
    assert f"the others lie within {others:.2f} of themselves" in TEXT
