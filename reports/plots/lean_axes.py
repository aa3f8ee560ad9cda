"""Axes whose ticks are drawn together.

Matplotlib has five artists per tick, and asks for their sizes a dozen times: half of the time of a figure. Here one
tick stands for all of an axis. The picture is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.text import Text
from matplotlib.ticker import NullLocator


class _LeanAxis(Axis):
    """An axis that draws all its ticks by its first one, until somebody asks for the labels of each."""

    along: ClassVar[int]
    """The coordinate that changes along it."""

    def __init__(self, axes: Axes, **options: Any) -> None:
        super().__init__(axes, **options)
        self._behind: tuple[object, ...] = ()
        self._marks: list[tuple[float, str]] = []
        self._boxes: list[Any] | None = None
        self._sizes: dict[tuple[object, ...], Any] = {}

    @property
    def is_lean(self) -> bool:
        """Whether one tick stands for all."""
        return len(self.majorTicks) == 1 and isinstance(self.get_minor_locator(), NullLocator)

    def get_children(self) -> list[Artist]:
        """What exists: asking does not make the other ticks."""
        return [self.label, self.offsetText] if self.is_lean else super().get_children()

    def get_majorticklabels(self) -> list[Text]:
        """The label of every tick, from now on an artist of its own."""
        super()._update_ticks()  # type: ignore[misc]
        return super().get_majorticklabels()

    def draw(self, renderer: Any) -> None:
        """Draw grid, ticks, their labels and the name."""
        if not (self.get_visible() and self.is_lean):
            super().draw(renderer)
            return
        ticks, tick = self._update_ticks(), self.majorTicks[0]
        for line, across in (tick.gridline, (0.0, 1.0, np.nan)), (tick.tick1line, (0.0,)):
            many = copy.copy(line)
            points = np.repeat([place for place, _ in self._marks], len(across)), np.tile(across, len(self._marks))
            many.set_data(points[self.along], points[1 - self.along])
            many.draw(renderer)
        for label in self._labels():
            label.draw(renderer)
        self._update_label_position(renderer)
        self.label.draw(renderer)
        boxes = self._get_ticklabel_bboxes(ticks, renderer)
        self._update_offset_text_position(*boxes)  # type: ignore[attr-defined]
        self.offsetText.set_text(self.get_major_formatter().get_offset())
        self.offsetText.draw(renderer)

    def _update_ticks(self) -> list[Any]:
        if not self.is_lean:
            return super()._update_ticks()  # type: ignore[misc, no-any-return]
        view, formatter = self.get_view_interval(), self.get_major_formatter()
        behind = *view, *self.axes.bbox.bounds, self.axes.figure.dpi, self.get_major_locator(), formatter
        if self._behind != behind:
            places = np.asarray(self.get_majorticklocs(), dtype=np.float64)
            low, high = sorted(self.get_transform().transform(np.asarray(view)))
            least, most = low - 1e-10 * (high - low), high + 1e-10 * (high - low)
            at, texts = self.get_transform().transform(places), formatter.format_ticks(places.tolist())
            self._marks = [(x, text) for x, text, t in zip(places, texts, at, strict=True) if least <= t <= most]
            self._behind, self._boxes = behind, None
        return self.majorTicks[: len(self._marks)]

    def _get_ticklabel_bboxes(self, ticks: list[Any], renderer: Any) -> tuple[list[Any], list[Any]]:
        if not self.is_lean:
            return super()._get_ticklabel_bboxes(ticks, renderer)  # type: ignore[misc, no-any-return]
        if self._boxes is None:
            self._boxes = [label.get_window_extent(renderer) for label in self._labels()]
        return self._boxes, []

    def _labels(self) -> Iterator[Text]:
        first = self.majorTicks[0].label1
        for place, text in self._marks if first.get_visible() else ():
            label = copy.copy(first)
            label.set_text(text)
            (label.set_x, label.set_y)[self.along](place)
            label._get_layout = partial(self._size, label)  # type: ignore[attr-defined]
            yield label

    def _size(self, label: Text, renderer: object) -> Any:
        """The size of a text is computed once, wherever it stands."""
        asked = label.get_text(), label.get_fontproperties(), label.get_rotation(), label.figure.dpi, renderer
        if asked not in self._sizes:
            self._sizes[asked] = Text._get_layout(label, renderer)  # type: ignore[attr-defined]
        return self._sizes[asked]

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
