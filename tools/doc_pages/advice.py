"""The packaged tables of `vcpo-bench advise` that follow from studies."""

import csv
import io

import pandas as pd

from studies import boundaries, formats
from studies.pages import ROOT, select

SYNCHRONOUS = {"method": "reinforce", "staleness": 0}


def tolerated() -> str:
    """Per task, method and lag: the largest rate that survives, as a share of the synchronous one, and its reward."""
    runs = select(pd.read_csv(ROOT / "docs/studies/phase/runs.csv"), role="search")
    found, last = boundaries.boundaries(runs), boundaries.last_survivors(runs)
    rows: list[tuple[object, ...]] = []
    for (task, method, lag), own in found.groupby(["task", "method", "staleness"]):
        if lag == 0 or str(method).startswith("vcpo("):  # parts of VCPO and its controls
            continue
        synchronous = boundaries.rate(select(found, task=task, **SYNCHRONOUS))
        under, over = own["under"].mean() > 0.5, own["over"].mean() > 0.5
        rate = runs["lr"].min() if under else runs["lr"].max() if over else boundaries.rate(own)
        beyond = "under" if under else "over" if over else ""
        top = select(last, task=task, method=method, staleness=lag)
        change = (top["final_reward"] - top["start_reward"]).mean()
        rows.append((task, method, lag, f"{rate / synchronous:.6f}", beyond, f"{change:.6f}", own["seed"].nunique()))
    return _text("task,method,lag,share,beyond,change,seeds", rows)


def earned() -> str:
    """Per method and lag of the default run: final rewards at one learning rate."""
    found = pd.read_csv(ROOT / "docs/studies/default-run/methods.csv")
    told = found["failed"].str.split(" of ", expand=True)
    table = found[["method", "lag_asked", "reward", "low", "high", "start"]].assign(failed=told[0], seeds=told[1])
    return _text("method,lag,reward,low,high,start,failed,seeds", list(table.itertuples(index=False, name=None)))


def facts() -> str:
    """Single numbers that stand in a sentence."""
    lowest, places = boundaries.lowest_earns_most(pd.read_csv(ROOT / "docs/studies/phase/runs.csv"), seeds=8)
    rows: list[tuple[object, ...]] = [("lowest_rate_earns_most", f"{lowest} of {places}", "phase")]
    rows += _steered()
    rows += _tuned()
    rows += _longer()
    rows += _released()
    return _text("name,value,study", rows)


def _released() -> list[tuple[object, ...]]:
    """Held-out rewards of SmolLM2 at lag 16: of the start, and at the end of each run of a method, by seed."""
    runs = pd.read_csv(ROOT / "studies/smollm2-first/tables/runs.csv").sort_values("seed")
    late = select(runs, staleness=16, start_model="second")
    ends = late.groupby("method")["final_reward"].agg(lambda own: " and ".join(f"{one:.2f}" for one in own))
    rows = [("start", f"{late['start'].mean():.2f}"), *((name, ends[name]) for name in ("reinforce", "tis", "vcpo"))]
    return [(f"released_{name}", value, "smollm2-first") for name, value in rows]


def _steered() -> list[tuple[object, ...]]:
    """Shares of the best gain over learning rates a factor of eight apart: steered at 0.12 / T, and VCPO's."""
    runs = pd.read_csv(ROOT / "studies/kl-target/tables/runs.csv")
    by_rate = runs.assign(longer=runs["tokens"] > 20).groupby(["longer", "arm", "lr"])["share"].mean()
    steered = [by_rate[longer, "0.12 / T"] for longer in (False, True)]
    low = by_rate[True, "vcpo"].loc[:5.66e-4]
    late = select(pd.read_csv(ROOT / "studies/shorter-steps/tables/runs.csv"), part="choose", staleness=64)
    at_64 = boundaries.share_of_best(late).loc["vcpo(ess=off)+kl-adaptive", 2.83e-4:2.26e-3]
    shares = [
        ("steered", steered[0], "kl-target"),
        ("steered_longer", steered[1], "kl-target"),
        ("steered_at_64", at_64, "shorter-steps"),
        ("scaled_at_low_rates", low, "kl-target"),
    ]
    return [(name, _ends(own.min(), own.max()), study) for name, own, study in shares]


def _tuned() -> list[tuple[object, ...]]:
    """Shares of the synchronous gain and rate that corrections keep at lag 64, each tuned, in seeds that chose none."""
    runs = pd.read_csv(ROOT / "studies/tuned-64/tables/runs.csv").query("seed > 2")
    kept = boundaries.share_of_gain(runs, 64).drop("reinforce", level="method")
    rate = kept["tis"].index[0] / select(runs, **SYNCHRONOUS)["lr"].iloc[0]
    facts = [
        ("kept_at_own_rate", _ends(kept.min(), kept.max())),
        ("tis_at_own_rate", formats.percent(kept["tis"].iloc[0])),
        ("tis_own_rate", formats.percent(rate)),
    ]
    return [(name, value, "tuned-64") for name, value in facts]


def _longer() -> list[tuple[object, ...]]:
    """At lag 16 and the rate where TIS has an ESS of 0.3, with 20 and 130 tokens: what is kept, and runs that fell."""
    runs = pd.read_csv(ROOT / "studies/length/tables/runs.csv").query("terms != 6")
    gain = select(runs, staleness=0).groupby("terms")["outcome"].mean()
    late = select(runs, staleness=16)
    share = late.groupby(["method", "terms"])["outcome"].mean() / gain
    rows = [(f"longer_{name}", " and ".join(map(formats.percent, share[name]))) for name in ("vcpo", "vespo", "clip")]
    fell = [f"{(own < 0).sum()} of {own.size}" for _, own in select(late, method="tis").groupby("terms")["outcome"]]
    return [(name, value, "length") for name, value in [*rows, ("longer_tis_fell", " and ".join(fell))]]


def _ends(first: float, last: float) -> str:
    return f"{formats.percent(first)} to {formats.percent(last)}"


def _text(header: str, rows: list[tuple[object, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header.split(","), *rows])
    return out.getvalue()
