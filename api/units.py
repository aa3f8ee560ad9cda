"""Unit and meaning of the columns that are no recorded measurement: those of the tables `cells` and `scoreboard`."""

from __future__ import annotations

from typing import NamedTuple

from vcpo_bench.records.settings import SETTINGS


class Meaning(NamedTuple):
    """Unit of a column, and one sentence on what it holds."""

    unit: str
    meaning: str


def _table(*lines: tuple[str, str, str]) -> dict[str, Meaning]:
    return {name: Meaning(unit, meaning) for name, unit, meaning in lines}


_SETTINGS = {name: Meaning(one.unit, one.meaning) for name, one in SETTINGS.items()}
_AXES = {name: _SETTINGS[name] for name in ("task", "method", "regime", "staleness", "lr")} | _table(
    ("control", "yes/no", "there for comparison only"),
)

_OUTCOME = _table(
    ("status", "word", "how it ended: completed, nan, stopped_by, error or partial"),
    ("reason", "text", "why it ended early"),
    ("error", "text", "the error that ended it"),
    ("steps_done", "updates", "optimizer updates made"),
    ("seconds", "s", "time of the whole run"),
    ("rules_version", "version", "rules under which results compare"),
    ("method_version", "version", "revision of the method"),
    ("partial", "yes/no", "still running, or interrupted"),
    ("path", "folder", "where its tables are"),
    ("provenance", "mapping", "commit, versions and hardware"),
)

_CURVES = _table(
    ("final_reward", "reward", "mean sampled reward of the last three evaluations"),
    ("final_greedy", "reward", "mean reward of argmax decoding over the last three evaluations"),
    ("best_reward", "reward", "sampled reward of the best evaluation: the maximum of noisy values, hence optimistic"),
    ("median_ess", "1/n..1", "raw ESS ratio, median over the updates before a collapse"),
    ("lag_mean", "updates", "realized lag, mean over tokens and updates"),
    ("lag_max", "updates", "largest realized lag"),
    ("lag_at_onset", "updates", "mean realized lag of the last update before a collapse began; missing without one"),
)

CELL_COLUMNS: dict[str, Meaning] = {
    **_table(("key", "key", "name of the cell")),
    **_AXES,
    **_SETTINGS,
    **_OUTCOME,
    **_CURVES,
    **_table(
        ("final_step", "updates", "updates before the last evaluation"),
        ("start_reward", "reward", "sampled reward of the start policy"),
        ("event", "word", "verdict of the collapse rule"),
        ("onset", "updates", "first evaluation of a collapse; missing without one"),
        ("last_step", "updates", "last evaluation the rule saw"),
        ("collapsed", "yes/no", "collapse, collapse with rebound or nan"),
    ),
}
"""Columns of `Tables.cells`: settings at their defaults may be absent."""

SCOREBOARD_COLUMNS: dict[str, Meaning] = {
    **_AXES,
    **_table(("seeds", "count", "cells with an evaluation"), ("total", "count", "cells")),
    **_CURVES,
    **{
        f"{name}_{bound}": Meaning("reward", f"{side} end of the 95% Student-t interval over seeds")
        for name in ("final_reward", "best_reward")
        for bound, side in (("low", "lower"), ("high", "upper"))
    },
    **_table(
        ("collapsed", "count", "cells that collapsed or ended as nan, by the collapse rule"),
        ("judged", "count", "cells the collapse rule could judge"),
        ("nan", "count", "cells that ended as nan"),
        ("stopped_by", "count", "cells that a detector stopped"),
        ("error", "count", "cells that ended in an error"),
        ("partial", "count", "cells that are still running"),
        ("damaged", "count", "cells of which a file cannot be read"),
    ),
}
"""Columns of `Tables.scoreboard`."""
