"""Does scaling the step by the ESS beat rules that never look at the weights of the data?"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from short_studies.contrasts import MARGIN, best_rate, contrast, judged, mean_row
from short_studies.study import TASKS, Study, Tables, short
from vcpo_bench.bench.cells.grid_spec import GridSpec

STEPS, LAG = 80, 16
RATES = (5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3)
CHOOSING, JUDGING = tuple(range(5)), tuple(range(5, 16))
"""Seeds that choose each rule's rate, and those over which the rules are compared at it."""
HOST = "tis"
ESS, GAP, SURGE = "tis+ess", "tis+gap-aware", "tis+length-surge(factor=1.25,window=20)"
KL = "tis+kl-adaptive"
TOO_HIGH = 8e-4
HIGHER = {GAP: 4.0}
"""Rules whose ladder starts higher: by their formula the scale at lag 16 lies between 1/17 and 1/5."""
RULES = (
    HOST,
    ESS,
    GAP,
    SURGE,
    f"tis+drift-cap(updates={STEPS})",
    KL,
    "tis+update-norm",
    "tis+dc-asgd(rule=adaptive)",
    "tis+gac",
)
RIVALS = {("walk", GAP), ("walk-eos", GAP), ("walk-eos", SURGE)}
"""The primary family. On `walk` every response has 12 tokens: there the length schedule is the constant rule."""


def grids() -> Iterator[GridSpec]:
    """One grid per ladder of rates."""
    for factor in (1.0, *HIGHER.values()):
        rules = tuple(rule for rule in RULES if HIGHER.get(rule, 1.0) == factor)
        rates = tuple(float(f"{rate * factor:.1e}") for rate in RATES)
        yield GridSpec(rules, (LAG,), CHOOSING + JUDGING, TASKS, rates, settings=short(STEPS), controls=False)


def tables(runs: pd.DataFrame) -> Tables:
    """The rules at their rates, ESS against each other rule, a rate too high, how wrong a rate may be, every rate."""
    return {
        "rules": rules_table(runs),
        "contrasts": contrasts(runs),
        "too_high": too_high(runs),
        "ladders": ladders_table(runs),
        "rates": rates_table(runs),
    }


def at_its_rate(own: pd.DataFrame) -> tuple[pd.DataFrame, float, bool]:
    """Runs of the judging seeds at the rate that is best for the choosing ones, that rate, whether it is at an edge.

    Args:
        own: Runs of one task and rule.
    """
    rate, edge = best_rate(own[own["seed"].isin(CHOOSING)])
    return own[own["seed"].isin(JUDGING) & (own["lr"] == rate)], rate, edge


def rules_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Per task and rule: its rate, and over the judging seeds the reward and what the rule did there."""
    rows = []
    for (task, rule), own in runs.groupby(["task", "method"], sort=False):
        kept, rate, edge = at_its_rate(own)
        row = {"task": task, "rule": rule, "rate": rate, "at_edge": "yes" if edge else ""}
        row |= mean_row(kept["final_reward"], "reward")
        row |= {"start": kept["start_reward"].mean(), "failed": f"{int(kept['failed'].sum())} of {len(kept)}"}
        row |= {name: kept[name].mean() for name in ("step_scale", "ess", "lag")}
        rows.append(row)
    return pd.DataFrame(rows).sort_values(["task", "reward"], ascending=[True, False]).reset_index(drop=True)


def contrasts(runs: pd.DataFrame) -> pd.DataFrame:
    """ESS minus each other rule, per task; the primary family is adjusted by itself, the rest by itself."""
    rows = []
    for task, own in runs.groupby("task", sort=False):
        rules = {rule: at_its_rate(table)[0].set_index("seed")["final_reward"] for rule, table in own.groupby("method")}
        for rule in RULES:
            if rule != ESS:
                facts = {"task": task, "against": rule, "primary": "yes" if (task, rule) in RIVALS else ""}
                rows.append(facts | contrast(rules[ESS], rules[rule]))
    table = pd.DataFrame(rows)
    families = [judged(own, "ESS better", "ESS worse") for _, own in table.groupby("primary", sort=True)]
    return pd.concat(families[::-1]).reset_index(drop=True)


def too_high(runs: pd.DataFrame) -> pd.DataFrame:
    """ESS scaling and `kl-adaptive` minus the constant step, all at `TOO_HIGH`, over the judging seeds."""
    there = runs[runs["seed"].isin(JUDGING) & (runs["lr"] == TOO_HIGH)]
    rows = []
    for task, own in there.groupby("task", sort=False):
        rules = {rule: table.set_index("seed")["final_reward"] for rule, table in own.groupby("method")}
        for rule in (ESS, KL):
            facts = {"task": task, "rule": rule, "start": own["start_reward"].mean(), "reward": rules[rule].mean()}
            rows.append(facts | contrast(rules[rule], rules[HOST]))
    return judged(pd.DataFrame(rows), "higher", "lower")


def ladders_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Per task and rule: what its ladder of rates as a whole says. Not registered.

    `other_runs` counts the runs that end at another reward than the host's with the same rate and seed, `other_at_rate`
    those at the rule's own rate.
    """
    rows = []
    for task, of_task in runs.groupby("task", sort=False):
        host = of_task[of_task["method"] == HOST].set_index(["lr", "seed"])["final_reward"]
        for rule, own in of_task.groupby("method", sort=False):
            means = own.groupby("lr")["final_reward"].mean()
            beside = own.set_index(["lr", "seed"])["final_reward"].to_frame().join(host.rename("host"), how="inner")
            row = {"task": task, "rule": rule, "start": own["start_reward"].mean(), "best": means.max()}
            row |= {"within_the_margin": f"{int((means >= means.max() - MARGIN).sum())} of {len(means)} rates"}
            row |= {"lowest": means.min(), "failed": f"{int(own['failed'].sum())} of {len(own)}"}
            other = beside["final_reward"] != beside["host"]
            there = other[other.index.get_level_values("lr") == at_its_rate(own)[1]]
            counts = {"other_runs": other, "other_at_rate": there}
            shares = {name: f"{int(own.sum())} of {len(own)}" for name, own in counts.items() if len(own)}
            rows.append(row | shares)
    return pd.DataFrame(rows).sort_values(["task", "lowest"], ascending=[True, False]).reset_index(drop=True)


def rates_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Every rule at every rate."""
    rows = []
    for (task, rule, rate), own in runs.groupby(["task", "method", "lr"], sort=False):
        row = {"task": task, "rule": rule, "rate": rate} | mean_row(own["final_reward"], "reward")
        rows.append(
            row | {"failed": f"{int(own['failed'].sum())} of {len(own)}", "step_scale": own["step_scale"].mean()}
        )
    return pd.DataFrame(rows)


def answer(made: Tables) -> list[str]:
    """What the primary contrasts say, in the words of the registration."""
    primary = made["contrasts"][made["contrasts"]["primary"] == "yes"]
    lines = [
        f"`{row['task']}`, ESS against `{row['against']}`: {row['difference']:+.3f} "
        f"[{row['low']:.3f}, {row['high']:.3f}], **{row['verdict']}**."
        for row in primary.to_dict("records")
    ]
    won = (primary["verdict"] == "ESS better").sum()
    if won == len(primary):
        lines.append("ESS beats gap-aware and the length schedule wherever it was compared.")
    else:
        lines.append(
            "**ESS scaling is not shown to beat gap-aware and the length schedule**: it does in "
            f"{won} of {len(primary)} primary comparisons."
        )
    hosts = made["rules"][made["rules"]["rule"] == HOST]
    gains = " and ".join(f"{row['reward'] - row['start']:.2f} on `{row['task']}`" for row in hosts.to_dict("records"))
    lines += [
        f"`{row['task']}`, `{row['rule']}` against the constant step, both at {TOO_HIGH:g}: {row['difference']:+.3f} "
        f"[{row['low']:.3f}, {row['high']:.3f}], **{row['verdict']}**; it ends at {row['reward']:.2f}, from "
        f"{row['start']:.2f} at the start."
        for row in made["too_high"].to_dict("records")
    ]
    lines.append(
        f"What there is to tell apart: the constant step at its rate gained {gains} in the seeds that judge; the "
        f"margin is {MARGIN}."
    )
    ladders = made["ladders"][made["ladders"]["rule"] != HOST]
    idle = [row for row in ladders.to_dict("records") if str(row["other_runs"]).startswith("0 of")]
    if idle:
        named = " and ".join(f"`{row['rule']}` on `{row['task']}`" for row in idle)
        lines.append(f"Never acted, so that comparing with it is comparing with the constant step: {named}.")
    near = [row for row in ladders.to_dict("records") if str(row["other_at_rate"]).split(" of ")[0] in ("0", "1")]
    if rest := [row for row in near if row not in idle]:
        named = ", ".join(f"`{row['rule']}` on `{row['task']}` ({row['other_at_rate']} runs)" for row in rest)
        lines.append(f"Nearly the constant step, because at their rates they hardly change where a run ends: {named}.")
    edges = made["rules"][made["rules"]["at_edge"] == "yes"]
    if len(edges):
        named = ", ".join(f"`{row['rule']}` on `{row['task']}`" for row in edges.to_dict("records"))
        lines.append(f"At an edge of their ladder, so that a better rate may lie outside of it: {named}.")
    return lines


SHOWN = ("rules", "contrasts", "too_high", "ladders", "rates")
STUDY = Study("step-rules", 1, tuple(grids()), 3.2, SHOWN, tables, answer)
