"""The table that ships with the acting study: one row per run, from its results; what is missing, and what follows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.monitoring.detectors import read_detector
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.bench.cells.results_folder import ended_keys

from .cells import FORKS, PARENTS, parent_cells
from .design import DETECTOR, METHOD, NOTHING, SLOWER, Branch, Heard, Parent, Policy, branches, parents

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "studies" / "acting"
RUNS = FOLDER / "runs.csv"
RUN = ["task", "group", "seed", "act", "at"]
FACTS = ["method", "lr", "event", "failed", "down", "onset", "final_reward", "updates", "alarm"]
DOWN = ("collapse", "nan")
"""The events of a run that is down when it ends."""
LAST = 3
"""Evaluations whose mean is the final reward."""


def run_table(out: Path) -> pd.DataFrame:
    """One row per run that has ended: `RUN` and `FACTS`; parents have act `nothing` at update 0, and their alarm."""
    folders = [out / name for name in (PARENTS, FORKS) if ended_keys(out / name)]
    tables = [table for table in (_rows(load(folder)) for folder in folders) if len(table)]
    return pd.concat([*tables] or [_empty()], ignore_index=True).sort_values(RUN).reset_index(drop=True)


def _rows(loaded: Results) -> pd.DataFrame:
    owners = {cell.key: parent for parent, cell in parent_cells().items()}
    table = events(loaded).rename(columns={"steps_done": "updates", "fork_step": "at"})
    forked = table["parent"].fillna("") != ""
    whose = table["parent"].where(forked, table["key"]).map(owners)
    table["act"] = table["method"].where(table["method"] != METHOD, SLOWER).where(forked, NOTHING)
    curves = loaded.evals.sort_values("step").groupby("key")["sampled_reward"]
    table["final_reward"] = table["key"].map(curves.apply(lambda curve: curve.tail(LAST).mean()))
    table["down"] = table["event"].isin(DOWN)
    table["alarm"] = table["key"].map(_first_alarms(loaded)).astype(float).where(~forked)
    kept = table[whose.notna() & (table["status"] != "error")].copy()
    for name in ("task", "group", "seed"):
        kept[name] = [getattr(parent, name) for parent in whose[kept.index]]
    return kept[[*RUN, *FACTS]]


def _first_alarms(loaded: Results) -> dict[str, float]:
    """Updates applied at the first alarm of each run; NaN: the detector was silent."""
    detector = read_detector(DETECTOR)
    signal, found = all_signals()[detector.signal], {}
    for key, steps in loaded.steps_by_cell():
        spoken = detector.alarms(signal.of(steps))
        found[key] = spoken.argmax() + 1.0 if spoken.any() else np.nan
    return found


def shipped(path: Path) -> pd.DataFrame:
    """The runs of a shipped table; none where there is no table yet."""
    return pd.read_csv(path) if path.exists() else _empty()


def _empty() -> pd.DataFrame:
    return pd.DataFrame(columns=[*RUN, *FACTS])


def joined(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The runs of two tables; where both have a run, that of the first: branches rest on it."""
    whole = pd.concat([table for table in (old, new) if len(table)] or [old], ignore_index=True)
    return whole.drop_duplicates(RUN, keep="first").sort_values(RUN).reset_index(drop=True)


def heard(runs: pd.DataFrame) -> dict[Parent, Heard]:
    """What each parent that has ended says."""
    own = runs[runs["act"] == NOTHING]
    return {
        Parent(row["task"], row["group"], int(row["seed"])): Heard(float(row["alarm"]), int(row["updates"]))
        for row in own.to_dict("records")
    }


def missing_parents(runs: pd.DataFrame) -> list[Parent]:
    """The parents that have not ended."""
    ended = heard(runs)
    return [parent for parent in parents() if parent not in ended]


def missing_branches(runs: pd.DataFrame) -> list[Branch]:
    """The branches that have not ended.

    Args:
        runs: With every parent.
    """
    ended = set(runs[RUN].itertuples(index=False, name=None))
    wanted = {branch for branch in branches(heard(runs)).values() if branch is not None}
    return sorted(branch for branch in wanted if _place(branch) not in ended)


def complete(runs: pd.DataFrame) -> bool:
    """Whether every run of the study has ended."""
    return not missing_parents(runs) and not missing_branches(runs)


def check_repeated(known: pd.DataFrame, new: pd.DataFrame) -> None:
    """Refuse parents that were made again and came out otherwise: their branches would start from other runs.

    Raises:
        RuntimeError: One did.
    """
    both = known.merge(new, on=RUN, suffixes=("", "_again"))
    for name in ("final_reward", "alarm"):
        first, again = both[name].astype(float), both[f"{name}_again"].astype(float)
        same = np.isclose(first, again, rtol=1e-6, equal_nan=True)
        if not same.all():
            where = pd.DataFrame(both.loc[~same, RUN]).to_dict("records")[0]
            raise RuntimeError(f"this machine's results differ from {RUNS.name} at {where}; set that table aside")


def treated(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per parent and treatment: `task`, `group`, `seed`, `when`, `act`, `at`, and the outcome.

    Where nothing was done, `at` is NaN and the outcome is that of the parent.

    Args:
        runs: Of a study that is complete.
    """
    rows = {tuple(row[name] for name in RUN): row for row in runs.to_dict("records")}
    found = []
    for policy, branch in branches(heard(runs)).items():
        row = rows[_place(branch) if branch else _untouched(policy)]
        place = {"task": policy.parent.task, "group": policy.parent.group, "seed": policy.parent.seed}
        place |= {"when": policy.when, "act": policy.act, "at": branch.at if branch else np.nan}
        found.append(place | {name: row[name] for name in ("final_reward", "failed", "down", "onset")})
    return pd.DataFrame(found)


def _place(branch: Branch) -> tuple[str, str, int, str, int]:
    return branch.parent.task, branch.parent.group, branch.parent.seed, branch.act, branch.at


def _untouched(policy: Policy) -> tuple[str, str, int, str, int]:
    return policy.parent.task, policy.parent.group, policy.parent.seed, NOTHING, 0
