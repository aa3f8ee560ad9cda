"""The tables of the prediction study in plain sentences. A number with too few runs is not given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.findings import with_interval
from vcpo_bench.analysis.monitoring.signals import PRIMARY
from vcpo_bench.analysis.prediction import alarm_sentences
from vcpo_bench.analysis.prediction.added_value_of_ess import BEST
from vcpo_bench.analysis.prediction.auroc import hanley_mcneil
from vcpo_bench.analysis.prediction.covariates import KNOWN_BEFORE
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, PRIMARY_LEAD, TOO_FEW, Panel
from vcpo_bench.analysis.prediction.signal_verdicts import AHEAD

HIGH_ESS = 0.9
"""Above this ESS ratio nobody would expect a loss."""

Tables = Mapping[str, pd.DataFrame]


def all_sentences(tables: Tables, panel: Panel) -> list[str]:
    """Everything the study has to say, the primary endpoint before the rest."""
    text = [count_sentence(tables["runs"], panel), *method_sentences(tables["runs"])]
    text += auroc_sentences(tables["auroc"])
    for speak in (_verdict_sentences, _matching_sentences, _null_sentences, _increment_sentences):
        text += speak(tables)
    text += _blind_sentences(tables) + alarm_sentences.all_sentences(tables)
    for speak in (_hazard_sentences, _model_sentences, _definition_sentences, _regime_sentences):
        text += speak(tables)
    return text + missing_sentences(tables["signals"])


def count_sentence(runs: pd.DataFrame, panel: Panel) -> str:
    """How many runs were started and what became of them."""
    total = runs[["started", "healthy", "collapsed", "nan", "stopped", "not_judged"]].sum()
    onset = np.median(panel.onset[panel.failed]) if panel.failed.any() else np.nan
    when = f" (half of the losses found by update {onset:.0f})" if np.isfinite(onset) else ""
    return (
        f"{total['started']} runs were started, all are in: {total['collapsed']} collapsed, {total['nan']} ended as "
        f"nan{when}, {total['healthy']} were never lost, {total['stopped']} were stopped by an alarm (censored), to "
        f"{total['not_judged']} the rule does not apply."
    )


def method_sentences(runs: pd.DataFrame) -> list[str]:
    """Who is lost: where one method has most of the losses, telling it from the others is most of any prediction."""
    table = runs.assign(lost=runs["collapsed"] + runs["nan"]).groupby("method")[["lost", "started"]].sum()
    table = table.sort_values("lost", ascending=False, kind="stable")
    total, safe = int(table["lost"].sum()), int((table["lost"] == 0).sum())
    if not total:
        return []
    rows = table.reset_index().to_dict("records")
    named = "; ".join(f"{row['method']} {row['lost']} of {row['started']}" for row in rows if row["lost"])
    text = [f"Losses by method: {named}" + (f"; none of the other {safe} methods." if safe else ".")]
    if rows[0]["lost"] > total / 2 and len(rows) > 1:
        text.append(
            f"{rows[0]['lost'] / total:.0%} of the losses are of {rows[0]['method']}: to tell it from the others is "
            "most of what a signal has to do here, and that is known without looking at the run. See `+rate+method` in "
            "`matching`, `configuration` in `increment`, and held-out methods below."
        )
    return text


def auroc_sentences(table: pd.DataFrame) -> list[str]:
    """The primary endpoint and its other leads."""
    here = table[table["signal"] == PRIMARY]
    if here.empty:
        return ["Primary endpoint: ESS was not recorded."]
    main = here[here["lead"] == PRIMARY_LEAD].iloc[0]
    what = f"ESS {PRIMARY_LEAD} updates before a run is found down, against runs of the same task, lag and step"
    if main["verdict"] == TOO_FEW:
        return [
            f"Primary endpoint: {what}: too few runs ({main['n_collapsed']} collapsed, {main['n_healthy']} healthy; "
            f"at least {LEAST_RUNS} of each are needed)."
        ]
    half = hanley_mcneil(main["value"], main["n_collapsed"], main["n_healthy"])
    return [
        f"Primary endpoint: {what}: AUROC {interval(main)}, {main['verdict']} ({main['n_collapsed']} collapsed, "
        f"{main['n_healthy']} healthy runs; as many independent runs would give about +-{half:.2f}).",
        "ESS by lead: " + "; ".join(_lead_words(row) for row in here.to_dict("records")) + ".",
        f"Its area under precision and recall at lead {PRIMARY_LEAD} is "
        f"{with_interval(main['auprc'], main['auprc_low'], main['auprc_high'], 3)}; guessing gives the prevalence, "
        f"{main['prevalence']:.3f}.",
    ]


def missing_sentences(signals: pd.DataFrame) -> list[str]:
    """Which signals no run recorded."""
    missing = list(signals.loc[~signals["recorded"], "signal"])
    if not missing:
        return []
    return [f"Not recorded, hence not judged: {', '.join(missing)} (see `vcpo-bench run --record`)."]


def interval(row: Mapping[Any, Any] | pd.Series, name: str = "", digits: int = 2) -> str:
    """`value [low, high]` of a row; with a name, of its columns `name`, `name_low`, `name_high`."""
    keys = (name, f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    value, low, high = (float(row[key]) for key in keys)
    return with_interval(value, low, high, digits)


def _verdict_sentences(tables: Tables) -> list[str]:
    verdicts, auroc = tables["verdicts"], tables["auroc"]
    main = auroc[auroc["lead"] == PRIMARY_LEAD].set_index("signal")
    verdicts = verdicts[(verdicts["verdict"] == AHEAD) | ~verdicts["signal"].isin(KNOWN_BEFORE)]
    result: list[str] = []
    for word, rows in verdicts.groupby("verdict", sort=True):
        if word == AHEAD:
            ordered = sorted(rows.to_dict("records"), key=lambda row: -main.loc[row["signal"], "value"])
            named = "; ".join(
                f"{row['signal']} {interval(main.loc[row['signal']])} (reaches {row['reach']:.0f})" for row in ordered
            )
            result.insert(0, f"Warns ahead, AUROC at lead {PRIMARY_LEAD} (Holm-corrected but for ESS): {named}.")
        elif word != TOO_FEW:
            result.append(f"{str(word).capitalize()}: {', '.join(rows['signal'])}.")
        else:
            result.append(f"Too few runs to judge: {', '.join(rows['signal'])}.")
    return result


def _matching_sentences(tables: Tables) -> list[str]:
    here = tables["matching"]
    here = here[here["signal"] == PRIMARY]
    if (here["verdict"] == TOO_FEW).all():
        return []
    return ["ESS by what controls are matched on: " + _listed(here, lambda row: str(row["match"])) + "."]


def _null_sentences(tables: Tables) -> list[str]:
    here = tables["nulls"][tables["nulls"]["signal"] == PRIMARY]
    result = []
    meaning = {
        "permuted within lag": "series of whole runs dealt out anew within task and lag",
        "permuted within lag and method": "the same within one method too",
        "permuted within configuration": "the same within one method and rate",
        "shifted": "case and controls read at one random earlier step",
        "surrogate": "stationary series with each run's own mean and spread",
    }
    for row in here.to_dict("records"):
        word = "beats" if row["p"] < 0.05 else "does not beat"
        null = with_interval(row["null_mean"], row["null_low"], row["null_high"])
        result.append(
            f"Null, {meaning[row['null']]}: ESS's {row['value']:.2f} {word} {null} (p = {row['p']:.2g}, one-sided)."
        )
    return result


def _increment_sentences(tables: Tables) -> list[str]:
    here = tables["increment"]
    here = here[here["lead"] == PRIMARY_LEAD]
    result = []
    for row in here.to_dict("records"):
        what = f"{row['comparison']} ({row['baseline']})" if row["comparison"] == BEST else str(row["comparison"])
        if row["verdict"] == TOO_FEW:
            result.append(f"{what}: too few runs ({row['n_collapsed']} collapsed, {row['n_healthy']} healthy).")
            continue
        result.append(
            f"{what}: AUROC {row['with']:.2f} against {row['without']:.2f}, difference {interval(row)}: "
            f"{row['verdict']}{_corrected(row)}."
        )
    return result


def _corrected(row: Mapping[Any, Any]) -> str:
    lost = row["verdict"] in ("more", "less") and row["comparison"] != BEST and not row["p_holm"] < 0.05
    return ", but not after Holm's correction" if lost else ""


def _hazard_sentences(tables: Tables) -> list[str]:
    here = tables["hazard"]
    here = here[here["verdict"] != TOO_FEW] if len(here) else here
    if here.empty:
        return ["Hazard models: too few runs."]
    corrected = here[(here["signal"] == PRIMARY) | (here["p_holm"] < 0.05)].sort_values("ratio", ascending=False)
    named = "; ".join(
        f"{row['signal']} {with_interval(row['ratio'], row['low'], row['high'])}"
        + (" (not proportional)" if row["p_proportional"] < 0.05 else "")
        for row in corrected.to_dict("records")
    )
    return [
        f"Hazard of being found down {PRIMARY_LEAD} updates later, ratio per standard deviation, each beside step, "
        f"lag, rate and task: {named or 'none stands after correction'}."
    ]


def _model_sentences(tables: Tables) -> list[str]:
    result = []
    for row in tables["models"].to_dict("records"):
        if row["verdict"] == TOO_FEW:
            result.append(f"Model of {row['model']}: too few runs.")
            continue
        result.append(
            f"Model of {row['model']} on held-out seeds: Uno's C {interval(row, 'c_index')}; Brier skill over "
            f"Kaplan-Meier {interval(row, 'skill')}, calibration slope {row['slope']:.2f}: its probabilities are "
            f"{row['verdict']}."
        )
    return result or ["Survival models need at least two seeds, to hold some out."]


def _definition_sentences(tables: Tables) -> list[str]:
    here = tables["definitions"]
    here = here[(here["signal"] == PRIMARY) & (here["verdict"] != TOO_FEW)]
    if here.empty:
        return []
    return ["ESS under other definitions of the event: " + _listed(here, lambda row: str(row["definition"])) + "."]


def _regime_sentences(tables: Tables) -> list[str]:
    here = tables["regimes"]
    here = here[(here["signal"] == PRIMARY) & (here["verdict"] != TOO_FEW)] if len(here) else here
    if here.empty:
        return []
    return ["ESS within one regime: " + _listed(here, lambda row: f"{row['column']} {row['value_of']}") + "."]


def _listed(table: pd.DataFrame, name: Callable[[Mapping[Any, Any]], str]) -> str:
    return "; ".join(f"{name(row)} {_or_too_few(row)}" for row in table.to_dict("records"))


def _blind_sentences(tables: Tables) -> list[str]:
    """Losses that ESS cannot see: it was still high at the landmark."""
    here = tables["placements"]
    here = here[here["score"].notna()] if "score" in here else here.iloc[:0]
    if here.empty:
        return []
    ess = np.exp(-here["score"])
    worst = here.loc[ess.idxmax(), "key"]
    return [
        f"{PRIMARY_LEAD} updates before they were found, {int((ess > HIGH_ESS).sum())} of {len(here)} lost runs still "
        f"had an ESS ratio above {HIGH_ESS} (highest {ess.max():.3f}, {worst}); one by one in `placements`."
    ]


def _or_too_few(row: Mapping[Any, Any]) -> str:
    if row["verdict"] == TOO_FEW:
        return f"too few ({row['n_collapsed']} collapsed, {row['n_healthy']} healthy)"
    return interval(row)


def _lead_words(row: Mapping[Any, Any]) -> str:
    lead = int(row["lead"])
    when = f"{lead} before" if lead > 0 else f"{-lead} after"
    return f"{when} {_or_too_few(row)}"
