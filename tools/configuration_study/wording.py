"""What the page of the study of configurations says, in words and short tables made from what ships."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD
from vcpo_bench.analysis.wording import interval_of, with_interval

from .design import ALL, BAR, RIVALS, SEEDS, WIDE, WITHIN

_NAMES = {"reward_low": "a low training reward", "kl": "the KL", "lr": "the learning rate"}
Tables = Mapping[str, pd.DataFrame]


def parts(tables: Tables) -> dict[str, pd.DataFrame | str]:
    """Every part of the page, by its name in `page.md`."""
    told = tables["telling"]
    return {
        "answer": "\n".join(f"{number}. {line}" for number, line in enumerate(_answer(tables), 1)),
        "ess": _at(told, lead=PRIMARY_LEAD, signal=PRIMARY).drop(columns=["signal", "lead"]),
        "rivals": tables["rivals"].drop(columns=["p_holm"]),
        "signals": _side_by_side(told),
        "leads": _at(told, signal=PRIMARY, task=ALL).drop(columns=["signal", "task", "verdict"]),
        "detectors": _spoken(tables["detectors"]),
        "fates": tables["fates"],
    }


def _answer(tables: Tables) -> list[str]:
    rivals = [_against(tables, WIDE, name) for name in RIVALS[WIDE]]
    return [_tells(tables, WIDE), *rivals, _before(tables), _promise(tables)]


def _tells(tables: Tables, controls: str) -> str:
    own = _at(tables["telling"], signal=PRIMARY, lead=PRIMARY_LEAD, controls=controls).set_index("task")
    row = own.loc[ALL]
    return (
        f"**ESS, {PRIMARY_LEAD} updates ahead: {_word(own['verdict'])}.** AUROC {interval_of(row)} against a bar of "
        f"{BAR:g}: {row['n_collapsed']:.0f} failed runs of {row['configurations']:.0f} configurations, "
        f"{row['n_healthy']:.0f} healthy runs. {_each(own)}"
    )


def _against(tables: Tables, controls: str, rival: str) -> str:
    own = _at(tables["rivals"], controls=controls, rival=rival).set_index("task")
    row = own.loc[ALL]
    return (
        f"**ESS less {_NAMES[rival]}: {_word(own['verdict'])}.** {interval_of(row)} ({row['ess']:.2f} against "
        f"{row['its']:.2f}). {_each(own)}"
    )


def _before(tables: Tables) -> str:
    own = _at(tables["telling"], signal=PRIMARY, lead=PRIMARY_LEAD, controls=WITHIN).set_index("task")
    row, (rival,) = own.loc[ALL], RIVALS[WITHIN]
    paired = _at(tables["rivals"], controls=WITHIN, rival=rival).set_index("task")
    gap = paired.loc[ALL]
    text = (
        f"**Among runs of one method at one lag: {_word(own['verdict'])}.** AUROC {interval_of(row)}. {_each(own)} ESS "
        f"less the learning rate: **{_word(paired['verdict'])}**, {interval_of(gap)} ({gap['ess']:.2f} against "
        f"{gap['its']:.2f}). {_each(paired)}"
    )
    if gap["verdict"] == "more":
        return text
    return f"{text} The learning rate, which needs no look at the run, ranks the runs as well or better."


def _promise(tables: Tables) -> str:
    own = _at(tables["detectors"], signal=ANY, task=ALL)
    said = [
        f"{row['study']} {100 * row['healthy_alarmed']:.0f}% [{100 * row['healthy_alarmed_low']:.0f}, "
        f"{100 * row['healthy_alarmed_high']:.0f}] ({row['verdict']})"
        for row in own.to_dict("records")
    ]
    return f"**Healthy runs in which any packaged detector speaks**, promised 17% [11, 25]: {', '.join(said)}."


def _word(verdicts: pd.Series) -> str:
    """The verdict on all tasks, or that the tasks differ."""
    alone = verdicts.drop(ALL)
    return str(verdicts[ALL]) if alone.nunique() == 1 and (alone == verdicts[ALL]).all() else "the tasks differ"


def _each(own: pd.DataFrame) -> str:
    alone = own.drop(index=ALL)
    said = [f"`{task}` {interval_of(row)} ({row['verdict']})" for task, row in alone.iterrows()]
    return f"{', '.join(said)}; all together: {own.loc[ALL, 'verdict']}."


def _side_by_side(told: pd.DataFrame) -> pd.DataFrame:
    """Every signal at the primary lead on all tasks, a column for each kind of controls, the best first."""
    rows = _at(told, lead=PRIMARY_LEAD, task=ALL)
    wide = {
        controls: own.set_index("signal")[["value", "low", "high"]].apply(
            lambda row: "" if pd.isna(row["value"]) else with_interval(row["value"], row["low"], row["high"]), axis=1
        )
        for controls, own in rows.groupby("controls", sort=False)
    }
    order = rows[rows["controls"] == WIDE].sort_values("value", ascending=False)["signal"]
    table = pd.DataFrame(wide).loc[order, [WIDE, WITHIN, SEEDS]].fillna("")
    return table.reset_index(names="signal")


def _spoken(detectors: pd.DataFrame) -> pd.DataFrame:
    """Any detector: how often it speaks, by study and task."""
    rows = _at(detectors, signal=ANY)
    shown = rows[["study", "task", "n_healthy", "n_collapsed"]].copy()
    shown["healthy_runs_alarmed"] = [_percent(row, "healthy_alarmed") for row in rows.to_dict("records")]
    shown["per_1000_healthy_updates"] = [interval_of(row, "false_per_1000") for row in rows.to_dict("records")]
    shown["failures_announced"] = [_percent(row, "recall") for row in rows.to_dict("records")]
    return shown.assign(verdict=rows["verdict"].fillna(""))


def _percent(row: Mapping[object, object], name: str) -> str:
    value, low, high = (100 * float(str(row[column])) for column in (name, f"{name}_low", f"{name}_high"))
    return "" if pd.isna(value) else f"{value:.0f}% [{low:.0f}, {high:.0f}]"


def _at(table: pd.DataFrame, **place: object) -> pd.DataFrame:
    """The rows with these values."""
    kept = pd.Series(True, index=table.index)
    for name, value in place.items():
        kept &= table[name] == value
    return table[kept]
