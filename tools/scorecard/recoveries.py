"""How often failed runs recover near the largest learning rate that survives: other studies' tables, beside fact 6."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.wording import listed

from . import panel
from .facts.f08_caps import CAPS, OWN, RATE
from .tables import Tables

REBOUND = "collapse with rebound"
PHASE, BOUNDARY, ACTING = (f"studies/{name}" for name in ("phase", "boundary", "acting"))
TABLES = (
    f"{PHASE}/runs.csv",
    f"{PHASE}/levels.csv",
    f"{BOUNDARY}/fates.csv",
    f"{BOUNDARY}/runs.csv",
    f"{ACTING}/treatments.csv",
)


def recoveries(tables: Tables) -> str:
    """Where fact 6 was judged, and what happened elsewhere; it judges nothing. Empty where a table is not there."""
    if not all(tables.page_exists(table) for table in TABLES):
        return ""
    parts = (_judged_at(tables), _near(tables), _all_over(tables), _of_tis(tables))
    return "\n".join(f"* {part}" for part in parts) + "\n"


def _judged_at(tables: Tables) -> str:
    levels = pd.read_csv(tables.docs / f"{PHASE}/levels.csv").set_index(["task", "method", "staleness"])["largest_rate"]
    places = [
        f"{rate / levels[task, method, panel.LAG]:.1f} times that of `{method}` on `{task}`"
        for task, rate in panel.RATES.items()
        for method in ("reinforce", panel.TIS)
    ]
    return (
        f"It is refuted at these learning rates only. In units of the largest that survives 300 updates at lag "
        f"{panel.LAG} in the [phase study](../phase/README.md) they are {listed(places)}."
    )


def _near(tables: Tables) -> str:
    fates = pd.read_csv(tables.docs / f"{BOUNDARY}/fates.csv").query("counts_as == 'failed'").set_index("event")["runs"]
    rows = pd.read_csv(tables.docs / f"{ACTING}/treatments.csv").query("parents == 'risky' and treatment == 'no act'")
    failed, down = int(rows["failed"].sum()), int(rows["down"].sum())
    runs = pd.read_csv(tables.docs / f"{BOUNDARY}/runs.csv").query("stage == 'main' and failed")
    every = int((runs["event"] == REBOUND).sum())
    return (
        f"Nearer to the boundary of a method many failed runs recover by update 300: {every} of {len(runs)} in the "
        f"[boundary study](../boundary/README.md), {fates[REBOUND]} of {fates.sum()} in its configurations that count, "
        f"and {failed - down} of {failed} runs of `reinforce` that were left alone in the "
        "[acting study](../acting/README.md)."
    )


def _all_over(tables: Tables) -> str:
    failed = pd.read_csv(tables.docs / f"{PHASE}/runs.csv").query("failed and staleness > 0")
    back = int((failed["event"] == REBOUND).sum())
    return (
        f"Over all learning rates, methods and lags above 0 of the phase study {back} of {len(failed)} do "
        f"({back / len(failed):.0%})."
    )


def _of_tis(tables: Tables) -> str:
    runs = pd.read_csv(tables.docs / f"{BOUNDARY}/runs.csv")
    failed = runs[(runs["stage"] == "main") & (runs["method"] == panel.TIS) & runs["failed"]]
    back = failed.assign(back=failed["event"] == REBOUND).groupby(["task", "staleness", "lr"])["back"]
    places = [
        f"{row['sum']} of {row['size']} on `{row['task']}` at lag {row['staleness']} and {row['lr']:.2g}"
        for row in back.agg(["sum", "size"]).reset_index().to_dict("records")
    ]
    text = f"For `{panel.TIS}` alone it depends on task and lag: in the boundary study {', '.join(places)}"
    if tables.missing((CAPS,)):
        return f"{text}."
    caps = tables.outcomes(CAPS)
    own = caps.loc[caps["failed"] & (caps["method"] == OWN), "event"]
    return f"{text}; in the runs of fact 8 {(own == REBOUND).sum()} of {len(own)} on `walk` at {RATE:.2g}."
