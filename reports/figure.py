"""A drawn figure as plain data: the sheet it was drawn on, the numbers of its lines, and what must be said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sheet:
    """What a figure is drawn for.

    Attributes:
        width: Inches, exact.
        panel_height: Inches of one row of panels.
        font_size: Points, in print.
        legend: Draw the legend into the figure (the page has buttons instead).
        most_columns: Panels side by side.
        most_height: Inches of a whole figure: what a slide has.
    """

    width: float = 9.0
    panel_height: float = 2.0
    font_size: float = 9.0
    legend: bool = False
    most_columns: int = 4
    most_height: float = math.inf


@dataclass
class Line:
    """The numbers of one drawn series: what hovering reads, and what its CSV holds.

    Attributes:
        panel: Number of its panel, from 0.
        name: Of the series.
        x: Shape [N].
        y: Shape [N].
        low: Lower end of its band or bars, shape [N]; None: it has none.
        high: Upper end.
        runs: How many runs its points rest on, each number once; empty: it rests on none (a closed form).
    """

    panel: int
    name: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None
    runs: tuple[int, ...] = ()


@dataclass
class Plot:
    """A drawn figure with what must be said about it.

    Attributes:
        name: Stable file name and anchor.
        title: What question it answers.
        caption: What is drawn, from which column, over how many seeds.
        figure: The drawing; its artists of method m carry the gid `m<index>-...` (index in `methods`).
        methods: Legend entries in order.
        lines: The data.
        x_name, y_name: Their names in the CSV.
        panels: A label per panel, in the order of `figure.axes`.
        blocks: For a heat map with a row per line, from the top down: rows of each of its blocks of equal height.
        places: The x values stand at equal distances 0, 1, 2, ... in order, not where their size says.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    methods: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    x_name: str = "x"
    y_name: str = "y"
    panels: list[str] = field(default_factory=list)
    places: bool = False
    blocks: list[int] = field(default_factory=list)
