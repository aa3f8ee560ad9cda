"""The small learning curves, as a terminal shows them."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.comparison.scoreboard import cell_summary
from vcpo_bench.analysis.results import Results
from vcpo_bench.reports.terminal.curves import braille, curves, mean_over_runs


def test_curves_show_each_method_and_say_when_it_collapsed(results: Results) -> None:
    text = curves(results.select(results.cells.loc[results.cells["seed"] == 0, "key"]))
    assert "chain, lag 16, lr 3e-4" in text
    assert "COLLAPSED at update" in next(line for line in text.splitlines() if line.startswith("  tis"))
    assert "COLLAPSED" not in next(line for line in text.splitlines() if line.startswith("  vcpo"))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "6 of 6 COLLAPSED" in curves(results)


def test_the_ess_of_a_collapsed_run_is_that_before_its_onset(results: Results) -> None:
    """After the onset a collapsed policy may look on-policy: here its ESS is set to one from there on."""
    some = results.select(results.cells.loc[results.cells["seed"] == 0, "key"])
    cells = cell_summary(some).set_index("key")
    (key,) = cells.index[(cells["method"] == "tis") & cells["collapsed"] & (cells["staleness"] == 16)]
    steps = some.steps.copy()
    mine = steps["key"] == key
    steps.loc[mine, "ess_ratio"] = np.where(steps.loc[mine, "step"] < cells.at[key, "onset"], 0.25, 1.0)
    some.__dict__["steps"] = steps
    lines = curves(some).splitlines()
    assert any("tis" in line and line.endswith("ESS 0.25") for line in lines)
    assert "ESS: median ratio, until the onset of a collapse" in lines[-1]


def test_curves_of_cells_without_a_table_say_so(results: Results) -> None:
    empty = results.select(results.cells["key"])
    empty.__dict__["steps"] = results.steps.iloc[:0]
    assert "vcpo: nothing recorded" in curves(empty)


def dots(lines: list[str]) -> np.ndarray:
    """Braille lines back to a boolean picture, row 0 on top."""
    bits = (
        (0, 0, 0x01), (1, 0, 0x02), (2, 0, 0x04), (3, 0, 0x40), (0, 1, 0x08), (1, 1, 0x10), (2, 1, 0x20),
        (3, 1, 0x80),
    )  # fmt: skip
    picture = np.zeros((4 * len(lines), 2 * len(lines[0])), dtype=bool)
    for y, line in enumerate(lines):
        for x, letter in enumerate(line):
            for row, column, bit in bits:
                picture[4 * y + row, 2 * x + column] = bool((ord(letter) - 0x2800) & bit)
    return picture


def test_braille_draws_the_series() -> None:
    picture = dots(braille(np.linspace(0, 1, 200), 10, 3, 1.0))
    heights = 11 - picture.argmax(axis=0)
    assert picture.any(axis=0).all()
    assert (np.diff(heights) >= 0).all()
    assert (heights[0], heights[-1]) == (0, 11)


def test_braille_joins_a_cliff_and_leaves_gaps_at_nan() -> None:
    cliff = dots(braille(np.r_[np.ones(20), np.zeros(20)], 10, 2, 1.0))
    assert cliff.all(axis=1).sum() == 0
    assert cliff[:, 10].all(), "the fall is drawn as one stroke"
    gap = dots(braille(np.r_[np.ones(10), np.full(10, np.nan)], 10, 2, 1.0))
    assert gap[:, :10].any()
    assert not gap[:, 10:].any()


def test_mean_over_runs_of_different_length() -> None:
    mean = mean_over_runs([np.array([1.0, 2.0, np.nan]), np.array([3.0])])
    assert mean[:2].tolist() == [2.0, 2.0]
    assert np.isnan(mean[2])
