"""Axes whose ticks are copied, measured and drawn together.

Matplotlib makes each tick anew of five artists, and asks for their sizes a dozen times: half of the time of a figure.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick, XAxis, YAxis
from matplotlib.text import Text


class _LeanAxis(Axis):
    along: ClassVar[int]
    """The coordinate that changes along the axis."""

    def __init__(self, axes: Axes, **options: Any) -> None:
        super().__init__(axes, **options)
        self._shown: tuple[tuple[object, ...], list[Tick]] = (), []
        self._sizes: dict[tuple[object, ...], Any] = {}

    def get_major_ticks(self, numticks: int | None = None) -> list[Tick]:
        """The first ticks, or all; those that are missing are copies of the first."""
        count = len(self.get_majorticklocs()) if numticks is None else numticks
        self.majorTicks.extend([self._copied(self.majorTicks[0]) for _ in range(len(self.majorTicks), count)])
        return self.majorTicks[:count]

    def _copied(self, tick: Tick) -> Tick:
        one = copy.copy(tick)
        for name in ("gridline", "tick1line", "tick2line", "label1", "label2"):
            setattr(one, name, copy.copy(getattr(tick, name)))
        one.label1.set_fontproperties(one.label1.get_fontproperties())  # its own
        one.label1._get_layout = partial(self._size, one.label1)  # type: ignore[attr-defined]
        return one

    def _size(self, label: Text, renderer: object) -> Any:
        asked = label.get_text(), label.get_fontproperties(), label.get_rotation(), label.figure.dpi, renderer
        if asked not in self._sizes:
            self._sizes[asked] = Text._get_layout(label, renderer)  # type: ignore[attr-defined]
        return self._sizes[asked]

    def _update_ticks(self) -> list[Tick]:
        ticker, axes = self.major, self.axes
        behind = *self.get_view_interval(), *axes.bbox.bounds, axes.figure.dpi, ticker.locator, ticker.formatter
        if self._shown[0] != behind:
            self._shown = behind, super()._update_ticks()  # type: ignore[misc]
        return self._shown[1]

    def draw(self, renderer: Any) -> None:
        """Draw the grid and the ticks as one line each, then the rest."""
        major = [tick for tick in self._update_ticks() if tick in self.majorTicks] if self.get_visible() else []
        places = [tick.get_loc() for tick in major]
        for name, across in ("gridline", (0.0, 1.0, np.nan)), ("tick1line", (0.0,)):
            for line in [copy.copy(getattr(tick, name)) for tick in major[:1]]:
                points = np.repeat(places, len(across)), np.tile(across, len(places))
                line.set_data(points[self.along], points[1 - self.along])
                line.draw(renderer)
        for tick in major:
            tick.draw = tick.label1.draw  # type: ignore[method-assign]
        super().draw(renderer)

    def _update_label_position(self, renderer: Any) -> None:
        if self.label.get_text():
            super()._update_label_position(renderer)  # type: ignore[misc]


class _LeanX(_LeanAxis, XAxis):
    along = 0


class _LeanY(_LeanAxis, YAxis):
    along = 1


class LeanAxes(Axes):
    """Axes with lean ticks."""

    def _init_axis(self) -> None:
        self.xaxis, self.yaxis = _LeanX(self, clear=False), _LeanY(self, clear=False)
        for spine, axis in ("bottom", self.xaxis), ("top", self.xaxis), ("left", self.yaxis), ("right", self.yaxis):
            self.spines[spine].register_axis(axis)
