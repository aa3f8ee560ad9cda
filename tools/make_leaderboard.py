"""Writes the entries of the leaderboard that this repository's own studies contribute, from their shipped tables.

    python tools/make_leaderboard.py

Every study is here whose tables have the settings, the end and the score of every run; docs/leaderboard.md says which
have not.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pandas as pd
from arm_study.arm_tables import LAST as LAST_OF_ARMS
from arm_study.arms import Arm
from phase_study.design import STEPS as STEPS_OF_PHASE
from phase_study.page import LEAST_SEEDS
from phase_study.tables import LAST as LAST_OF_PHASE
from phase_study.tables import RUNS as RUNS_OF_PHASE
from phase_study.tables import complete, joined, shipped
from phase_study.waves import SECOND
from scorecard.catalog import all_facts
from scorecard.tables import LAST as LAST_OF_SCORECARD
from scorecard.tables import Tables
from short_studies.catalog import all_studies
from short_studies.collect import LAST as LAST_OF_SHORT
from short_studies.collect import RUNS as RUNS_OF_SHORT
from short_studies.study import PLACE, Study
from third_task_study.design import PLAN as THIRD_TASK
from third_task_study.design import RUNS as RUNS_OF_THIRD_TASK

from vcpo_bench.analysis.comparison.board_settings import unusual_settings
from vcpo_bench.analysis.comparison.leaderboard import Entry, rows_of
from vcpo_bench.analysis.comparison.normalized_rewards import LAST
from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.settings import CellSettings

TOOLS = Path(__file__).resolve().parent
DOCS = TOOLS.parent / "docs"
STUDIES = DOCS / "studies"
FOLDER = STUDIES / "leaderboard"
ENDED = {
    "default-run": "2026-11-26",
    "gspo-bounds": "2026-11-26",
    "sixteen-seeds": "2026-11-25",
    "step-rules": "2026-11-23 to 2026-11-25",
}
"""When the runs of short studies were made, where not on one day with the others."""
UNTIL = 10_000
"""Updates: more than any run of the scorecard has."""
LAST_OF_TINKER = 2
"""Evaluations after the start: there are three in all."""


def entry(name: str, day: str, rules_version: str, last: int, scores: pd.DataFrame, settings: pd.DataFrame) -> Entry:
    """One study.

    Args:
        name: Of its folder.
        day: When its runs were made.
        rules_version: Under which.
        last: Evaluations whose mean is a score.
        scores: One row per run, as `rows_of` takes them.
        settings: Of each run.
    """
    title = (STUDIES / name / "README.md").read_text(encoding="utf-8").splitlines()[0]
    return Entry(
        name=name,
        title=title.removeprefix("# ").replace("`", ""),
        by="The vcpo-bench authors",
        machine="2 shared CPU cores",
        versions=f"a development version before vcpo-bench 0.1.0, {day}",
        rules_version=rules_version,
        cells=len(scores),
        rows=rows_of(scores, unusual_settings(settings)),
        last_evaluations=last,
    )


def protocol() -> Entry:
    """The protocol study with its controls and its runs without lag; rules 1.0 had no warm-up."""
    scores = pd.read_csv(STUDIES / "protocol" / "tables" / "scores.csv")
    settings = as_set([CellSettings(lr_warmup=0)] * len(scores))
    return entry("protocol", "2026-11-21", "1.0", LAST, scores, settings)


def short_study(study: Study) -> Entry:
    """A study of short runs."""
    planned = {_place(cell): cell for cell in study.cells().values()}
    runs = pd.read_csv(study.folder / "runs.csv").rename(columns={"final_reward": "score"})
    cells = [planned[place] for place in runs[[*PLACE]].itertuples(index=False, name=None)]
    scores = runs.assign(control=[cell.control for cell in cells])
    day = ENDED.get(study.name, "2026-11-23")
    return entry(study.name, day, "2.0", LAST_OF_SHORT, scores, as_set(cell.config for cell in cells))


def _place(cell: PlannedCell) -> tuple[object, ...]:
    """What tells a run apart, its rate with the digits of the shipped table."""
    values = [getattr(cell.config, name) for name in PLACE]
    return tuple(float(f"{value:.6g}") if isinstance(value, float) else value for value in values)


def arm_study(name: str, tool: str) -> Entry:
    """A study of arms: what its table leaves out is the same in all runs of an arm, and none ended in an error."""
    arms: tuple[Arm, ...] = runpy.run_path(str(TOOLS / tool / "design.py"))["ARMS"]
    configs = {arm.name: plan_grid(arm.spec)[0].config for arm in arms}
    runs = pd.read_csv(STUDIES / name / "runs.csv").rename(columns={"final_reward": "score"})
    own = [configs[arm] for arm in runs["arm"]]
    scores = runs.assign(
        regime=[one.regime for one in own], lr=[one.lr for one in own], control=False, status="completed"
    )
    return entry(name, "2026-11-25", "2.0", LAST_OF_ARMS, scores, as_set(own))


def scorecard() -> Entry:
    """The runs of the scorecard that have ended."""
    blocks = [block for fact in all_facts() for block in fact.blocks]
    runs = Tables.read(STUDIES / "scorecard", DOCS).outcomes(*blocks, until=UNTIL)
    settings = runs[["prompts", "steps"]].assign(lr_warmup=CellSettings().lr_warmup)
    scores = runs.rename(columns={"final": "score"}).assign(control=False)
    return entry("scorecard", "2026-11-23", "2.0", LAST_OF_SCORECARD, scores, settings)


def searched(name: str, day: str, runs: pd.DataFrame) -> Entry:
    """The runs that searches of the phase study's kind asked for and that its rule of collapse could judge.

    Args:
        name: Of the study's folder.
        day: When its runs were made.
        runs: Of `phase_study.tables.run_table`.
    """
    scores = runs.rename(columns={"final_reward": "score"}).assign(regime="fifo", control=False, status="completed")
    settings = as_set([CellSettings(steps=STEPS_OF_PHASE)] * len(runs))
    return entry(name, day, "2.0", LAST_OF_PHASE, scores, settings)


def tinker() -> Entry:
    """The cells that a Tinker server trained."""
    cells = pd.read_csv(STUDIES / "tinker" / "cells.csv")
    evals = pd.read_csv(STUDIES / "tinker" / "evals.csv").sort_values("step").groupby("key")["sampled_reward"]
    scores = cells.assign(score=cells["key"].map(evals.apply(lambda curve: curve.tail(LAST_OF_TINKER).mean())))
    return entry("tinker", "2026-11-22", "2.0", LAST_OF_TINKER, scores, cells)


def as_set(settings: Iterable[CellSettings]) -> pd.DataFrame:
    """One row per run with its settings."""
    return pd.DataFrame([one.model_dump() for one in settings])


def _is_entry(study: Study) -> bool:
    """Whether it has runs, and one of them in each row: a study may differ in a setting besides."""
    return study.place == PLACE and (study.folder / RUNS_OF_SHORT).exists()


def entries() -> Iterator[Entry]:
    """Every entry."""
    yield protocol()
    yield from (short_study(study) for study in all_studies().values() if _is_entry(study))
    yield arm_study("tool-use", "tool_study")
    yield arm_study("moe", "moe_study")
    yield scorecard()
    second = shipped(SECOND / RUNS_OF_PHASE.name)
    yield searched("phase", "2026-11-24 to 2026-11-26", joined(shipped(RUNS_OF_PHASE), second))
    if len(complete(shipped(RUNS_OF_THIRD_TASK), THIRD_TASK)) >= LEAST_SEEDS:
        yield searched("third-task", "2026-11-25", shipped(RUNS_OF_THIRD_TASK))
    yield tinker()


def texts() -> dict[str, str]:
    """Content of each file by its name."""
    return {f"{one.name}.json": one.text() for one in entries()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
