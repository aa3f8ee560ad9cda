"""`vb.figure`: one figure of the report as a matplotlib figure. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from vcpo_bench.api.tables import Tables
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.plots.catalog import chosen
from vcpo_bench.reports.plots.letters import spell
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.study import Study, open_study
from vcpo_bench.reports.writers.paper import restricted
from vcpo_bench.reports.writers.venues import find_venue, sheets


def figure(
    results: Tables | str | Path,
    name: str = "ess-vs-collapse",
    *,
    venue: str = "iclr",
    methods: Sequence[str] = (),
) -> Figure:
    """Draw one figure of the report, to show in a notebook, to change, or to save in any format of matplotlib.

    Args:
        results: What `load` returned, or a results folder.
        name: As `vcpo-bench report --figure` takes it, such as `ess-vs-collapse`, or `reward-steps-walk` where there is
            one of each task.
        venue: Whose width and letters it has: `icml`, `iclr`, ..., or sizes such as `4x1.5in@9pt`.
        methods: Method expressions to restrict it to; empty: all.

    Returns:
        The figure; `get_label()` is its caption. It belongs to no window: `figure.savefig("figure.pdf")`.

    Raises:
        UsageError: An unknown name, venue or method, several figures of that name, or results that do not have what it
            shows.
    """
    sizes, (column, text) = find_venue(venue), sheets(venue)
    study = Study(results.results) if isinstance(results, Tables) else open_study(results)
    pictures = chosen(restricted(study, methods), [name])
    if len(pictures) > 1:
        raise UsageError(f"figure: there are several {name}: {', '.join(one.name for one in pictures)}")
    (picture,) = pictures
    with drawing(sizes.font, sizes.letters):
        plot = picture.draw(text if picture.wide else column)
        if plot is None:
            raise UsageError(f"figure: {name} needs {picture.needs}, which these results do not have")
        spell(plot.figure, sizes.letters)
        plot.figure.draw_without_rendering()
    plot.figure.set_facecolor("white")  # of dark notebooks too
    plot.figure.set_label(plot.caption)
    return plot.figure
