"""The tables of the page: how parents ended, what each treatment earns, and the contrasts, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
from short_studies.contrasts import contrast, judged, mean_row

from vcpo_bench.analysis.intervals import wilson, within_unit

from .design import FOURTH, GROUPS, NOTHING, PLAN, RATES, SEEDS, SLOWER, WAVES, Group, Parent, When
from .tables import treated

Treatment = tuple[When, str]
NO_ACT: Treatment = ("never", NOTHING)
VCPO: Treatment = ("alarm", "vcpo")
PLACEBO: Treatment = ("placebo", "vcpo")
CHEAPER: tuple[Treatment, ...] = (("alarm", "tis"), ("alarm", SLOWER))
_TIMES: Mapping[When, str] = {"alarm": "the alarm", "placebo": "a placebo time", "false alarm": "a false alarm"}
LEAST_ACTS = 0.5
"""Share of seeds in which the two sides must be different runs, for a verdict."""
LEAST_FAILURES = 0.5
"""Share of risky parents that must fail, for a verdict on a task's risky parents."""
LEAST_HEALTHY = 0.75
"""Share of calm parents that must not fail, for a verdict on a task's calm parents."""


@dataclass(frozen=True)
class Question:
    """A question and the contrasts that answer it.

    Attributes:
        text: As the page asks it.
        group: Whose parents.
        pairs: The first treatment of each minus the second.
    """

    text: str
    group: Group
    pairs: tuple[tuple[Treatment, Treatment], ...]


ANY_UPDATE = "Does the alarm do better than an update that knows nothing of the run, with the same mean?"
PRIMARY = Question("Does acting at the alarm help?", "risky", ((VCPO, NO_ACT),))
SECONDARY = (
    Question(ANY_UPDATE, "risky", ((VCPO, PLACEBO),)),
    Question("Do cheaper acts help?", "risky", tuple((each, NO_ACT) for each in CHEAPER)),
    Question("Do cheaper acts help as much as vcpo?", "risky", tuple((each, VCPO) for each in CHEAPER)),
    Question("What does a false alarm cost or gain?", "calm", tuple((each, NO_ACT) for each in PLAN["calm"])),
)

ADDED = Question("And `clip`? Added later.", "risky", ((FOURTH, NO_ACT), (FOURTH, VCPO)))


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the page, by name, from the runs of a complete study."""
    table = treated(runs)
    return {
        "primary": contrast_table(table, [PRIMARY]),
        "secondary": contrast_table(table, SECONDARY),
        "added": contrast_table(table, [ADDED]),
        "waves": wave_table(table),
        "treatments": treatment_table(table),
        "placebos": placebo_table(table),
        "parents": parent_table(runs),
    }


def wave_table(table: pd.DataFrame) -> pd.DataFrame:
    """Every contrast in each wave of seeds alone; Holm's families are those of the page, within the wave.

    Args:
        table: Of `tables.treated`.

    Returns:
        The columns of `contrast_table`, and `wave`: its seeds.
    """
    found = []
    for wave in WAVES:
        own = table[table["seed"].isin(wave)]
        parts = [contrast_table(own, questions) for questions in ([PRIMARY], SECONDARY)]
        found.append(pd.concat(parts).assign(wave=f"{wave[0]} to {wave[-1]}"))
    return pd.concat(found, ignore_index=True)


def contrast_table(table: pd.DataFrame, questions: Sequence[Question]) -> pd.DataFrame:
    """Differences in final reward, paired by parent, with verdicts; Holm's family is the whole table.

    Args:
        table: Of `tables.treated`.
        questions: What is asked of each task.

    Returns:
        Columns `question`, `task`, `one`, `other`, `apart` (seeds in which they are different runs), `seeds`,
        `difference` with its 95% and 90% intervals, `p`, `p_holm`, `verdict`.
    """
    rows: list[dict[str, Any]] = []
    for question in questions:
        for task in RATES:
            own = table[(table["task"] == task) & (table["group"] == question.group)]
            rows += [{"question": question.text, "task": task} | _compared(own, *pair) for pair in question.pairs]
    found = pd.DataFrame(rows)
    why = found.pop("why")
    found = judged(found.assign(p=found["p"].where(why == "")), "higher", "lower")
    return found.assign(verdict=found["verdict"].where(why == "", why))


def _compared(own: pd.DataFrame, left: Treatment, right: Treatment) -> dict[str, Any]:
    one, other, untouched = (of_treatment(own, each) for each in (left, right, NO_ACT))
    same_run = one["at"].isna() & other["at"].isna()
    same_run |= (one["at"] == other["at"]) & (left[1] == right[1])
    apart, failed = int((~same_run).sum()), int(untouched["failed"].sum())
    row = {"one": named(left), "other": named(right), "apart": apart}
    row |= contrast(one["final_reward"], other["final_reward"])
    return row | {"why": _why_not(str(own["group"].iloc[0]), apart, failed, len(untouched))}


def _why_not(group: str, apart: int, failed: int, seeds: int) -> str:
    """Why there is no verdict; empty: there is one."""
    if group == "risky" and failed < LEAST_FAILURES * seeds:
        return "too few failures"
    if group == "calm" and seeds - failed < LEAST_HEALTHY * seeds:
        return "parents not healthy"
    return "too few acts" if apart < LEAST_ACTS * seeds else ""


def of_treatment(own: pd.DataFrame, treatment: Treatment) -> pd.DataFrame:
    """The rows of one treatment, by seed."""
    when, act = treatment
    return own[(own["when"] == when) & (own["act"] == act)].set_index("seed").sort_index()


def named(treatment: Treatment) -> str:
    """What a treatment is called in tables and sentences."""
    when, act = treatment
    return "no act" if treatment == NO_ACT else f"{act} at {_TIMES[when]}"


def treatment_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task, group and treatment: how often something was done, the reward, and how the runs ended.

    Args:
        table: Of `tables.treated`.

    Returns:
        Columns `task`, `parents`, `treatment`, `seeds`, `acted`, `first_at`, `median_at`, `last_at`, `reward` with its
        95% interval, `failed` by the written rule, `failed_after`: of those, onset after the act, `down` when it ends,
        and, paired with no act, `saved` (it was down and is not) and `lost`.
    """
    rows = []
    for task, group in product(RATES, GROUPS):
        own = table[(table["task"] == task) & (table["group"] == group)]
        untouched = of_treatment(own, NO_ACT)["down"].astype(bool)
        for treatment in (NO_ACT, *PLAN[group]):
            row = {"task": task, "parents": group, "treatment": named(treatment)}
            rows.append(row | _earned(of_treatment(own, treatment), untouched))
    return pd.DataFrame(rows)


def _earned(one: pd.DataFrame, untouched: pd.Series) -> dict[str, Any]:
    down, reward = one["down"].astype(bool), mean_row(one["final_reward"], "reward")
    reward["low"], reward["high"] = within_unit(one["final_reward"], reward["low"], reward["high"])
    at, failed = one["at"], one["failed"].astype(bool)
    row = {"seeds": len(one), "acted": int(at.notna().sum())}
    row |= {"first_at": at.min(), "median_at": at.median(), "last_at": at.max()} | reward
    after = failed & ~(one["onset"] <= at)
    row |= {"failed": int(failed.sum()), "failed_after": int(after.sum()), "down": int(down.sum())}
    return row | {"saved": int((untouched & ~down).sum()), "lost": int((~untouched & down).sum())}


def placebo_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task and side of the parent's own alarm: how many placebos fell there, and what they earn.

    Args:
        table: Of `tables.treated`.

    Returns:
        Columns `task`, `placebo` (`before its alarm`, `at its alarm or later`, `no alarm`), `runs`, and
        `reward`: their mean.
    """
    rows = []
    for task in RATES:
        own = table[(table["task"] == task) & (table["group"] == "risky")]
        placebos, alarm = of_treatment(own, PLACEBO), of_treatment(own, VCPO)["at"]
        acted, before = placebos["at"].notna(), placebos["at"] < alarm
        sides = {
            "before its alarm": acted & before,
            "at its alarm or later": acted & alarm.notna() & ~before,
            "no alarm": acted & alarm.isna(),
        }
        for side, chosen in sides.items():
            reward = placebos.loc[chosen, "final_reward"].mean()
            rows.append({"task": task, "placebo": side, "runs": int(chosen.sum()), "reward": reward})
    return pd.DataFrame(rows)


def parent_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per task and group: how the parents end, and when the detector fires.

    Args:
        runs: Of `tables.run_table`.

    Returns:
        Columns `task`, `parents`, `lr`, `seeds`, `failed`, `down`, `median_onset`, `alarmed` with the 95% interval of
        its share (Wilson), `median_alarm`, `before_onset`: failures whose first alarm precedes the onset, and
        `median_lead` of those.
    """
    untouched, rows = runs[runs["act"] == NOTHING], []
    for task, group in product(RATES, GROUPS):
        own = untouched[(untouched["task"] == task) & (untouched["group"] == group)]
        rows.append({"task": task, "parents": group, "lr": Parent(task, group, SEEDS[0]).lr} | _ended(own))
    return pd.DataFrame(rows)


def _ended(own: pd.DataFrame) -> dict[str, Any]:
    failed, alarm = own["failed"].astype(bool), own["alarm"].astype(float)
    onset = own["onset"].astype(float)[failed]
    lead = onset - alarm[failed]
    low, high = wilson(int(alarm.notna().sum()), len(own))
    row: dict[str, Any] = {"seeds": len(own), "failed": int(failed.sum()), "down": int(own["down"].sum())}
    row |= {"median_onset": onset.median(), "alarmed": int(alarm.notna().sum()), "low": low, "high": high}
    row |= {"median_alarm": alarm.median(), "before_onset": int((lead > 0).sum())}
    return row | {"median_lead": lead[lead > 0].median()}
