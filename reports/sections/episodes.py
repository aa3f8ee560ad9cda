"""What the policies wrote: the same held-out prompts from the first evaluation to the last."""

from __future__ import annotations

from textwrap import shorten

import numpy as np
import pandas as pd

from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import number, rate, whole
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.cell_pages import anchor
from vcpo_bench.reports.study import Study

RUNS_PER_OUTCOME = 2
EPISODES_SHOWN = 4
EVALUATIONS_SHOWN = 5
"""Evenly from the first to the last; the best one comes on top of them."""
_LONGEST = 200


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A table of the failed runs that fell furthest and the best surviving ones per task; none without records."""
    written = {str(key): rows for key, rows in study.results.episodes.groupby("key", sort=False)}
    told = study.cells[study.cells["key"].isin(written) & study.cells["key"].isin(study.evals)]  # both can be read
    chosen = pd.concat([_chosen(runs) for _, runs in told.groupby("task", sort=True)]) if len(told) else told
    rows = [row for _, cell in chosen.iterrows() for row in _rows(study, cell, written[str(cell["key"])])]
    if not rows:
        return []
    caption = (
        f"The first {EPISODES_SHOWN} held-out prompts with a sampled response each, and in brackets its reward: at up "
        f"to {EVALUATIONS_SHOWN} evaluations from the first to the last, and at the best one. Per task: the collapsed "
        "runs that fell furthest, and the survivors with the highest final reward."
    )
    headings = ["task", "method", "lag", "lr", "outcome", "update", "mean reward", "episodes"]
    return [Table("episodes", caption, headings, rows, numeric=frozenset({2, 3, 5, 6}), settings=4)]


def _chosen(runs: pd.DataFrame) -> pd.DataFrame:
    runs = runs.assign(fall=runs["best_reward"] - runs["final_reward"])  # before selecting: an empty frame would grow
    failed = runs[runs["collapsed"].astype(bool)].sort_values(["fall", "key"], ascending=[False, True])
    kept = runs[~runs["collapsed"].astype(bool) & ~runs["control"].astype(bool)]
    kept = kept.sort_values(["final_reward", "key"], ascending=[False, True])
    return pd.concat([failed.head(RUNS_PER_OUTCOME), kept.head(RUNS_PER_OUTCOME)])


def _rows(study: Study, cell: pd.Series, written: pd.DataFrame) -> list[list[TableCell]]:
    evals = study.evals[str(cell["key"])]
    rewards = evals["sampled_reward"]
    best = int(np.nan_to_num(rewards).argmax())
    places = {*np.linspace(0, rewards.size - 1, EVALUATIONS_SHOWN).round().astype(int).tolist(), best}
    rows = []
    for place in sorted(places):
        step, reward = int(evals["step"][place]), float(rewards[place])
        said = written[written["step"] == step].sort_values("prompt").head(EPISODES_SHOWN)
        rows.append(
            [
                TableCell(str(cell["task"])),
                TableCell(str(cell["method"]), link=anchor(str(cell["key"]))),
                TableCell(str(cell["staleness"]), sort=float(cell["staleness"])),
                TableCell(rate(cell["lr"]), sort=float(cell["lr"])),
                TableCell(str(cell["event"]), tone="bad" if cell["collapsed"] else ""),
                TableCell(whole(step), sort=float(step)),
                TableCell(number(reward), sort=reward),
                TableCell(_numbered(said)),
            ]
        )
    return rows


def _numbered(said: pd.DataFrame) -> str:
    pairs = zip(said["text"], said["reward"], strict=True)
    return "   ".join(
        f"({place}) {shorten(text, _LONGEST, placeholder=' ...')} [{reward:g}]"
        for place, (text, reward) in enumerate(pairs, 1)
    )


SECTIONS = (ReportSection("episodes", "Example episodes", 125, blocks),)
