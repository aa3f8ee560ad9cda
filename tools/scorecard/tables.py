"""The tables that ship with the scorecard, and what every judge reads from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import FAILURES, judge
from vcpo_bench.bench.cells.grid import PlannedCell

from .cells import PLACE, REFERENCE_STEPS, Block, place_of, planned

RUNS, EVALS, UPDATES = "runs.csv", "evals.csv.gz", "updates-{}.csv.gz"
RUNS_PER_FILE = 32
"""Runs whose updates are in one file: together they would be larger than a file may be."""
EVAL_COLUMNS = ["sampled_reward", "sampled_reward_easy", "sampled_reward_hard", "entropy"]
UPDATE_COLUMNS = [
    "sampled_reward",
    "ess_ratio",
    "kl_mu_theta_k3",
    "grad_norm",
    "entropy",
    "step_scale",
    "share_clipped",
    "share_masked",
    "lag_max",
    "length_mean",
]
RUN_COLUMNS = ["run", *PLACE, "status"]
LAST = 3
"""Evaluations whose mean is the final reward."""


@dataclass(frozen=True)
class Tables:
    """The shipped tables.

    Attributes:
        runs: One row per run: `RUN_COLUMNS`; `run` is a number. What the file has besides follows from the others.
        evals: One row per evaluation: `run`, `step` and `EVAL_COLUMNS`.
        updates: One row per update of the runs that need them: `run`, `step` and `UPDATE_COLUMNS`.
        docs: The folder `docs`, whose other tables some facts rest on.
    """

    runs: pd.DataFrame
    evals: pd.DataFrame
    updates: pd.DataFrame
    docs: Path
    _found: dict[object, pd.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def read(cls, folder: Path, docs: Path) -> Tables:
        """The tables of a folder; empty ones where nothing has run yet."""
        if not (folder / RUNS).exists():
            return cls.empty(docs)
        runs, evals = pd.read_csv(folder / RUNS)[RUN_COLUMNS], pd.read_csv(folder / EVALS)
        updates = [pd.read_csv(path) for path in sorted(folder.glob(UPDATES.format("*")))]
        return cls(runs, evals, pd.concat(updates or [cls.empty(docs).updates], ignore_index=True), docs)

    @classmethod
    def empty(cls, docs: Path) -> Tables:
        """Tables without a run."""
        head = ["run", "step"]
        columns = (RUN_COLUMNS, head + EVAL_COLUMNS, head + UPDATE_COLUMNS)
        runs, evals, updates = (pd.DataFrame(columns=pd.Index(names)) for names in columns)
        return cls(runs, evals, updates, docs)

    def missing(self, blocks: Iterable[Block]) -> int:
        """How many runs of these blocks are not in the table."""
        blocks = list(blocks)
        if not blocks:
            return 0
        there = {run for block in blocks for run in block.rows(self.runs)["run"]}
        return len(planned(blocks)) - len(there)

    def without_runs(self, cells: Iterable[PlannedCell]) -> list[PlannedCell]:
        """The cells whose runs are not in the table."""
        known = {tuple(row) for row in self.runs[PLACE].itertuples(index=False)}
        return [cell for cell in cells if place_of(cell.config) not in known]

    def page_exists(self, page: str) -> bool:
        """Whether another study's table is there."""
        return (self.docs / page).exists()

    def outcomes(self, *blocks: Block, until: int = REFERENCE_STEPS) -> pd.DataFrame:
        """How the runs of blocks ended, by the written rule on the evaluations up to an update.

        Returns:
            The rows of `runs` with `event`, `failed`, `onset` (NaN: none), `life` (updates until the onset, at most
            `until`) and `final` (mean sampled reward of the last evaluations, of all, easy and hard prompts).
        """
        rows = pd.concat([block.rows(self.runs) for block in blocks]).drop_duplicates("run")
        ended = [self._outcome(run, status, until) for run, status in zip(rows["run"], rows["status"], strict=True)]
        return rows.reset_index(drop=True).join(pd.DataFrame(ended))

    def with_onsets(self) -> pd.DataFrame:
        """The runs as they ship: with `onset`, by the written rule on all evaluations of a run.

        It is how many updates had been applied at the evaluation that first found the run down; NaN: it did not fail.
        """
        events = [
            judge(curve["step"], curve["sampled_reward"], status)
            for status, curve in zip(self.runs["status"], map(self.curve, self.runs["run"]), strict=True)
        ]
        return self.runs.assign(onset=[event.onset for event in events])

    def curve(self, run: int) -> pd.DataFrame:
        """The evaluations of a run, in order."""
        return self._of("evals", run)

    def signals(self, run: int) -> pd.DataFrame:
        """The updates of a run, in order."""
        return self._of("updates", run)

    def _outcome(self, run: int, status: str, until: int) -> dict[str, object]:
        curve = self.curve(run)
        cut = curve[curve["step"] <= until]
        whole = len(cut) == len(curve)
        event = judge(cut["step"], cut["sampled_reward"], status if whole else "completed")
        failed = event.kind in FAILURES
        life = min(event.onset, until) if failed and np.isfinite(event.onset) else until
        last = cut.tail(LAST)
        facts: dict[str, object] = {"event": event.kind, "failed": failed, "onset": event.onset, "life": float(life)}
        names = ("final", "final_easy", "final_hard", "final_entropy")
        return facts | {name: float(last[column].mean()) for column, name in zip(EVAL_COLUMNS, names, strict=True)}

    def _of(self, name: str, run: int) -> pd.DataFrame:
        if name not in self._found:
            self._found[name] = getattr(self, name).set_index("run").sort_index(kind="stable")
        table = self._found[name]
        return table.loc[[run]] if run in table.index else table.iloc[:0]
