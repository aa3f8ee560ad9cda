"""The sentences of `analyze compare`; each rests on one table, and says so when the data cannot decide."""

from __future__ import annotations

import math

import pandas as pd

from vcpo_bench.analysis.findings import rate, verdict, with_interval
from vcpo_bench.analysis.intervals import seed_warning

Tables = dict[str, pd.DataFrame]


def compare_sentences(tables: Tables, column: str, notes: list[str]) -> list[str]:
    """All findings in order: limits first, then ranking, rates, ablation, controls, speed."""
    unit = "normalized reward (0: start policy, 1: best synchronous training)" if column == "normalized" else "reward"
    ranking = tables["ranking"]
    text = [*notes]
    if len(ranking):
        text += [warning] if (warning := seed_warning(int(ranking["seeds"].min()), "runs")) else []
    text += [_winner(lag, rows, tables["pairs"], unit) for lag, rows in ranking.groupby("staleness")]
    text += _tuning(tables["choices"], tables["budget"]) + _frontier(tables["frontier"])
    text += _ablation(tables["ablation"]) + _controls(tables["step_controls"])
    return text + _targets(tables["targets"]) + _cost(tables["cost"])


def _winner(lag: object, rows: pd.DataFrame, pairs: pd.DataFrame, unit: str) -> str:
    best = rows.iloc[0]
    sentence = (
        f"Lag {lag}: at its best rate {best['method']} has the highest interquartile mean, "
        f"{with_interval(best['iqm'], best['iqm_low'], best['iqm_high'])} of {unit}"
    )
    here = pairs[
        (pairs["staleness"] == lag) & ((pairs["first"] == best["method"]) | (pairs["second"] == best["method"]))
    ]
    beaten: list[str] = []
    open_: list[str] = []
    for pair in here.to_dict("records"):
        ahead = (pair["estimate"] > 0) == (pair["first"] == best["method"])
        other = pair["second"] if pair["first"] == best["method"] else pair["first"]
        (beaten if ahead and pair["p_holm"] < 0.05 else open_).append(other)
    sentence += f"; it is better than {_listed(beaten)} (paired, Holm-corrected at 5%)" if beaten else ""
    sentence += f"; it cannot be told apart from {_listed(open_)}" if open_ else ""
    return sentence + "."


def _tuning(choices: pd.DataFrame, budget: pd.DataFrame) -> list[str]:
    if choices.empty or not any(len(rates) > 1 for rates in budget["rates"]):
        return []
    sentences = []
    for lag, here in choices.groupby("staleness") if choices["chosen_lr"].nunique() > 1 else ():
        parts = []
        for method, own in here.groupby("method"):
            chosen = sorted({rate(lr) for lr in own["chosen_lr"].dropna()})
            parts.append(f"{method} {' or '.join(chosen) or 'none'}")
        sentences.append(f"Rates chosen at lag {lag}: {', '.join(parts)}.")
    return sentences + _truncated(choices, budget)


def _truncated(choices: pd.DataFrame, budget: pd.DataFrame) -> list[str]:
    """Whose search ended at the largest rate wherever it was tuned: the best may lie beyond."""
    largest = max((max(rates) for rates in budget["rates"] if rates), default=math.nan)
    at_edge = choices.groupby("method")["chosen_lr"].agg(lambda own: bool((own == largest).all()))
    if not at_edge.any():
        return []
    who = _listed([str(name) for name in at_edge.index[at_edge]])
    return [f"For {who} the largest rate tried, {rate(largest)}, was best everywhere: a better one may lie beyond it."]


def _frontier(table: pd.DataFrame) -> list[str]:
    sentences = []
    unknown = table[table["exponent"].isna() & (table["method"] != "(all)")]
    for reason, rows in unknown.groupby("reason"):
        who = _listed(list(rows["method"]))
        sentences.append(f"How the stable rate falls with lag cannot be said for {who}: {reason}.")
    for row in table[table["exponent"].notna()].to_dict("records"):
        who = "all methods together" if row["method"] == "(all)" else row["method"]
        interval = with_interval(row["exponent"], row["low"], row["high"])
        says = {"more": "it falls faster than 1/lag", "less": "it falls more slowly than 1/lag"}
        fits = says.get(verdict(row["low"], row["high"], 1.0), "which is consistent with 1/lag")
        sentences.append(f"The stable rate of {who} falls as lag^-a with a = {interval}: {fits}.")
    return sentences


def _ablation(table: pd.DataFrame) -> list[str]:
    sentences = []
    for row in table[table["at"] == "best rate"].to_dict("records"):
        effect = {"more": "raises", "less": "lowers"}.get(verdict(row["low"], row["high"]))
        interval = with_interval(row["estimate"], row["low"], row["high"])
        if row["family"] == "vcpo, clip":
            says = {"more": "clipping takes from it", "less": "clip gains more"}.get(verdict(row["low"], row["high"]))
            sentences.append(
                f"Lag {row['staleness']}: the effect of ESS scaling on VCPO's base minus that on clip is {interval}: "
                f"{says or 'they cannot be told apart'}."
            )
        elif row["effect"] in ("ess", "opob", "ess given opob", "opob given ess"):
            says = f"{effect} the score" if effect else "makes no difference that can be told apart from 0"
            sentences.append(f"Lag {row['staleness']}, family {row['family']}: {row['effect']} {says}: {interval}.")
    return sentences


def _controls(table: pd.DataFrame) -> list[str]:
    sentences = []
    for row in table[table["pairs"] > 0].to_dict("records"):
        says = {
            "more": "so the timing of small steps matters, not only their size",
            "less": "so equally small steps without its timing do better",
        }.get(verdict(row["low"], row["high"]), "so smaller steps alone may explain it")
        interval = with_interval(row["estimate"], row["low"], row["high"])
        sentences.append(
            f"Lag {row['staleness']}: {row['method']} minus its lr-{row['control']} control: {interval}, {says}."
        )
    return sentences


def _targets(table: pd.DataFrame) -> list[str]:
    sentences = []
    for (lag, target), rows in table.groupby(["staleness", "target"]):
        if target != 0.75:
            continue
        fastest = rows.sort_values(["median_updates", "mean_updates"]).iloc[0]
        if math.isinf(fastest["median_updates"]):
            sentences.append(
                f"Lag {lag}: no method brings half of its runs to 75% of the synchronous gain in its budget."
            )
            continue
        sentences.append(
            f"Lag {lag}: {fastest['method']} is first at 75% of the synchronous gain, after a median of "
            f"{fastest['median_updates']:.0f} updates ({fastest['reached']} of {fastest['total']} runs get there)."
        )
    return sentences


def _cost(table: pd.DataFrame) -> list[str]:
    known = table[(table["method"] != table["base"]) & table["added"].notna()]
    return [
        f"An update of {row['method']} on {row['task']} takes {row['milliseconds']:.1f} ms; compared with "
        f"{row['base']} that is {with_interval(row['added'], row['low'], row['high'], 1)} ms more."
        for row in known.to_dict("records")
    ]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
