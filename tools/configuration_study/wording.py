"""What the page of the study of configurations says, in words and short tables made from what ships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.calibrating.judge import ANY
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW
from vcpo_bench.analysis.wording import interval_of, listed

from .areas import LATE
from .design import ALL, BAR, FIXED, MAIN, OTHERS, RATE, REPEATED, RIVALS, SEEDS, TUNED, WIDE, WITHIN

_NAMES = {
    "reward_low": "a low training reward",
    "reward_drop": "a drop of it",
    "kl": "the KL",
    RATE: "the learning rate",
}
Tables = Mapping[str, pd.DataFrame]
Row = Mapping[Any, Any]


def parts(tables: Tables) -> dict[str, pd.DataFrame | str]:
    """Every part of the page, by its name in `page.md`."""
    told = at(tables["telling"], study=MAIN)
    primary = at(told, lead=PRIMARY_LEAD, landmarks=ALL)
    late = at(told, landmarks=LATE, signal=PRIMARY)
    both = at(tables["telling"], lead=PRIMARY_LEAD, landmarks=ALL, controls=WITHIN)
    shown = ["study", "task", "controls", "rival", "ess", "its", "value", "low", "high", "verdict"]
    return {
        "answer": "\n".join(f"{number}. {line}" for number, line in enumerate(_answer(tables), 1)),
        "ess": at(primary, signal=PRIMARY).drop(columns=["study", "signal", "lead", "landmarks"]),
        "rivals": tables["rivals"][shown],
        "fixed": both[both["signal"].isin([PRIMARY, RATE])].drop(columns=["controls", "lead", "landmarks", "verdict"]),
        "signals": _side_by_side(primary),
        "leads": at(told, signal=PRIMARY, task=ALL, landmarks=ALL).drop(
            columns=["study", "signal", "task", "landmarks", "verdict"]
        ),
        "late": late.drop(columns=["study", "signal", "lead", "landmarks", "verdict"]),
        "detectors": _spoken(tables["detectors"]),
        "each": _by_detector(tables["detectors"]),
        "fates": tables["fates"],
        "again": again(tables),
    }


def _answer(tables: Tables) -> list[str]:
    return [
        _primary(tables),
        _tells(tables, WITHIN),
        _tells(tables, WIDE),
        _rivals(tables),
        _unread(tables),
        _noise(tables),
    ]


def again(tables: Tables) -> str:
    """Which words differ between the seeds that were read first and the others, and what all of them say."""
    lines = []
    first = at(tables["rivals"], study=MAIN, task=ALL)
    for row in first.to_dict("records"):
        name = {"task": ALL, "controls": row["controls"], "rival": row["rival"]}
        other, whole = (at(tables["again_rivals"], seeds=seeds, **name).to_dict("records")[0] for seeds in REPEATED)
        alike = "same" if other["verdict"] == row["verdict"] else "**different**"
        lines.append(
            f"- ESS less {_NAMES[row['rival']]}, controls {row['controls']}: {row['verdict']} on seeds 4 to 7; "
            f"{alike} verdict on the others, {other['verdict']}, {_gap(other)}; "
            f"all eight: {whole['verdict']}, {_gap(whole)}."
        )
    for controls in (WIDE, WITHIN):
        name = {"task": ALL, "controls": controls, "landmarks": ALL, "signal": PRIMARY, "lead": PRIMARY_LEAD}
        row = at(tables["telling"], study=MAIN, **name).iloc[0]
        other, whole = (at(tables["again_telling"], seeds=seeds, **name).to_dict("records")[0] for seeds in REPEATED)
        alike = "same" if other["verdict"] == row["verdict"] else "**different**"
        lines.append(
            f"- AUROC of ESS, controls {controls}: {row['verdict']} on seeds 4 to 7; {alike} verdict on the others, "
            f"{other['verdict']}, {interval_of(other)}; all eight: {whole['verdict']}, {interval_of(whole)}."
        )
    return "\n".join(lines) + "\n"


def _primary(tables: Tables) -> str:
    own = at(tables["rivals"], study=MAIN, controls=WITHIN, rival=RATE).set_index("task")
    other = at(tables["rivals"], study=FIXED, controls=WITHIN, rival=RATE).set_index("task")
    seeds = at(tables["rivals"], study=MAIN, controls=OTHERS, rival=RATE).set_index("task")
    row, fixed, apart = _whole(own), _whole(other), _whole(seeds)
    early = at(tables["unread"], study=FIXED, task=ALL).iloc[0]
    readable = early["failed"] - early["too_early"]
    return (
        f"{_differ(own['verdict'])}**ESS against the learning rate, among runs of one method at one lag: "
        f"{row['verdict']}.** {_gap(row)}; {_each(own)}. {conclusion(row['verdict'], fixed['verdict'])} Against "
        f"controls of other seeds alone (not registered): {_gap(apart)}, {apart['verdict']}. In step rules, whose "
        f"rates were fixed beforehand: {_gap(fixed)}, {fixed['verdict']}; {_each(other)}. There "
        f"{early['early']} of the {readable} failures that can be read are read within the warm-up or before the "
        "requested lag is reached."
    )


def conclusion(phase: str, fixed: str) -> str:
    """What the primary outcome comes to.

    Args:
        phase: Its word in the phase study.
        fixed: Its word in step rules.
    """
    if phase == "more":
        if fixed == "more":
            return "ESS knows more than the learning rate does, also where the rates were fixed beforehand."
        return (
            "That is no answer: here rates were chosen by how runs ended, and where they were fixed beforehand ESS is "
            "not shown to know more."
        )
    return {
        "less": "The learning rate, which is known before the run, ranks runs better here.",
        "equivalent": "The learning rate, which is known before the run, ranks runs as well.",
        "undecided": "ESS is not shown to rank runs better than the learning rate, which is known before the run.",
    }.get(phase, "Nothing can be said.")


def _tells(tables: Tables, controls: str) -> str:
    place = at(tables["telling"], study=MAIN, lead=PRIMARY_LEAD, landmarks=ALL, controls=controls)
    own, rate = (at(place, signal=name).set_index("task") for name in (PRIMARY, RATE))
    row, what = _whole(own), "of any method" if controls == WIDE else "of the same method"
    return (
        f"{_differ(own['verdict'])}**ESS, {PRIMARY_LEAD} updates ahead, against controls {what}: {row['verdict']}.** "
        f"AUROC {interval_of(row)}, bar {BAR:g}; {_each(own)}. The learning rate has {interval_of(_whole(rate))}. "
        f"{row['failed']:.0f} failed runs and {row['never_fail']:.0f} that never fail."
    )


def _rivals(tables: Tables) -> str:
    own = at(tables["rivals"], study=MAIN, controls=WIDE)
    said = ["**ESS less its rivals, against controls of any method**, Holm over the four:"]
    for rival in RIVALS[WIDE]:
        one = at(own, rival=rival).set_index("task")
        row = _whole(one)
        word = f"{_differ(one['verdict'])}less {_NAMES[rival]}: **{row['verdict']}**"
        said.append(f"    - {word}, {_gap(row)}; {_each(one)}.")
    return "\n".join(said)


def _unread(tables: Tables) -> str:
    row = at(tables["unread"], study=MAIN, task=ALL).iloc[0]
    return (
        f"**Of {row['failed']} failures {row['too_early']} come too early to be read {PRIMARY_LEAD} updates ahead.** "
        f"{row['early']} of the other {row['failed'] - row['too_early']} are read within the warm-up or before the "
        "requested lag is reached."
    )


def _noise(tables: Tables) -> str:
    own = at(tables["detectors"], signal=ANY, task=ALL)
    said = [f"{row['study']} {_known(interval_of(row, 'false_per_1000', 1), row)}" for row in own.to_dict("records")]
    calibrated = interval_of(_calibrated().loc[[ANY]].to_dict("records")[0], "false_per_1000", 1)
    return (
        f"**Alarms of any packaged detector per 1,000 updates of healthy runs**, {calibrated} where they were "
        f"calibrated: {', '.join(said)}. [Which of them](#the-packaged-detectors-elsewhere) fires differs from study "
        "to study."
    )


def _calibrated() -> pd.DataFrame:
    """What the packaged detectors did where they were tuned, on configurations that were held out."""
    return pd.read_csv(TUNED.with_name("parts.csv")).set_index("signal")


def _by_detector(detectors: pd.DataFrame) -> pd.DataFrame:
    """Alarms of each detector per 1,000 updates of healthy runs, a column for each study, and where it was tuned."""
    rows = at(detectors, task=ALL)
    wide = rows.pivot(index="signal", columns="study", values="false_per_1000")[list(rows["study"].unique())]
    wide.insert(0, "calibration", _calibrated()["false_per_1000"].reindex(wide.index))
    recorded = rows.pivot(index="signal", columns="study", values="n_healthy").reindex_like(wide)
    shown = wide.map(lambda rate: "" if pd.isna(rate) else f"{rate:.1f}").mask(recorded == 0, "not recorded")
    return shown.loc[sorted(shown.index, key=lambda name: (name != ANY, name))].reset_index()


def _known(text: str, row: Row) -> str:
    return f"({TOO_FEW})" if row["verdict"] == TOO_FEW else f"{text} ({row['verdict']})"


def _gap(row: Row) -> str:
    if pd.isna(row["value"]):
        return "no number"
    return f"{interval_of(row, digits=3)} ({row['ess']:.2f} against {row['its']:.2f})"


def _each(own: pd.DataFrame) -> str:
    """Every task with its word."""
    alone, digits = own.drop(index=ALL).reset_index(names="task"), 3 if "its" in own else 2
    return listed([f"`{row['task']}` {_value(row, digits)}{row['verdict']}" for row in alone.to_dict("records")])


def _whole(own: pd.DataFrame) -> Row:
    """The row of all tasks together."""
    return own.loc[[ALL]].to_dict("records")[0]


def _value(row: Row, digits: int = 2) -> str:
    return "" if pd.isna(row["value"]) else f"{interval_of(row, digits=digits)} "


def _differ(verdicts: pd.Series) -> str:
    """Said first where the tasks have different words; where there are too few runs for one, it has none."""
    alone = verdicts.drop(ALL)
    return "*The tasks differ.* " if alone[alone != TOO_FEW].nunique() > 1 else ""


def _side_by_side(told: pd.DataFrame) -> pd.DataFrame:
    """Every signal on all tasks, a column for each kind of controls, the best first."""
    rows = at(told, task=ALL)
    wide = {
        controls: pd.Series({row["signal"]: _value(row).strip() for row in own.to_dict("records")})
        for controls, own in rows.groupby("controls", sort=False)
    }
    order = at(rows, controls=WIDE).sort_values("value", ascending=False)["signal"]
    return pd.DataFrame(wide).loc[order, [WIDE, WITHIN, SEEDS]].fillna("").reset_index(names="signal")


def _spoken(detectors: pd.DataFrame) -> pd.DataFrame:
    """Any detector: how often it fires, by study and task."""
    rows = at(detectors, signal=ANY)
    each = rows.to_dict("records")
    shown = rows[["study", "task", "updates", "batch", "n_healthy", "n_collapsed"]].copy()
    shown["per_1000_healthy_updates"] = [_rate(row, "false_per_1000", 1.0) for row in each]
    shown["healthy_runs_alarmed"] = [_rate(row, "healthy_alarmed", 100.0) for row in each]
    shown["failures_announced"] = [_rate(row, "recall", 100.0) for row in each]
    return shown.assign(verdict=rows["verdict"].fillna(""))


def _rate(row: Row, name: str, scale: float) -> str:
    value, low, high = (scale * float(str(row[column])) for column in (name, f"{name}_low", f"{name}_high"))
    if pd.isna(value):
        return ""
    return f"{value:.0f}% [{low:.0f}, {high:.0f}]" if scale == 100 else f"{value:.1f} [{low:.1f}, {high:.1f}]"


def at(table: pd.DataFrame, **place: object) -> pd.DataFrame:
    """The rows with these values."""
    kept = pd.Series(True, index=table.index)
    for name, value in place.items():
        kept &= table[name] == value
    return table[kept]
