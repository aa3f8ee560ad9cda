"""The tables that ship with the study, made from the updates of other studies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.judge import ANY
from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.commands.prediction import analyze_prediction
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.panel import CONFIGURATION, PRIMARY_LEAD
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.errors import UsageError

from .areas import rivals, telling, unread
from .design import ALL, FIXED, MAIN, OTHERS, RATE, READ, REPEATED, SEEDS_READ, STUDIES, WITHIN
from .detectors import detector_table
from .panels import lagged, panel_of

TABLES = ("telling", "rivals", "unread", "detectors", "fates", "again_telling", "again_rivals")
RUN_BY_RUN = ("misses", "false_alarms", "failures", "placements")
"""Tables of single runs, of which only the rows of the primary signal ship."""
SENTENCES = "findings.txt"


def unpacked(results: Path, names: Iterable[str] = READ) -> Iterator[tuple[str, Results]]:
    """The runs of each of these studies, whose archives are unpacked into a new folder.

    Raises:
        UsageError: The folder is there: whatever runs it holds would be read as those of the studies.
    """
    if results.exists():
        raise UsageError(
            f"{results} exists; name a folder that does not: the archives of the studies are unpacked there"
        )
    for name in names:
        print(f"{name}: {unpack_folder(STUDIES / name / 'updates', results / name)} cells", flush=True)
        yield name, load(results / name)


def make(results: Path) -> dict[str, pd.DataFrame]:
    """Every table of `TABLES`.

    Args:
        results: Where the archives are unpacked.
    """
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for name, runs in unpacked(results):
        if name == MAIN:
            for kind, table in repeated(runs).items():
                parts[kind].append(table)
            runs = of_seeds(runs, SEEDS_READ)
        parts["detectors"].append(detector_table(name, runs))
        parts["fates"].append(fate_table(name, lagged(runs)))
        if name in (MAIN, FIXED):
            panel, main = panel_of(runs), name == MAIN
            told = telling(panel) if main else telling(panel, (PRIMARY, RATE), (PRIMARY_LEAD,))
            compared = rivals(panel) if main else rivals(panel, (WITHIN, OTHERS))
            tables = {"telling": told, "rivals": compared, "unread": unread(panel)}
            for kind, table in tables.items():
                parts[kind].append(table.assign(study=name)[["study", *table]])
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def of_seeds(results: Results, seeds: Iterable[int]) -> Results:
    """The runs of these seeds."""
    return results.select(results.cells.loc[results.cells["seed"].isin(list(seeds)), "key"])


def repeated(results: Results) -> dict[str, pd.DataFrame]:
    """Questions 1 and 2, asked of other seeds of the main study; column `seeds` says which."""
    parts: dict[str, list[pd.DataFrame]] = {"again_telling": [], "again_rivals": []}
    for label, seeds in REPEATED.items():
        panel = panel_of(of_seeds(results, seeds))
        told = telling(panel, (PRIMARY, RATE), (PRIMARY_LEAD,))
        for kind, table in zip(parts, (told, rivals(panel)), strict=True):
            parts[kind].append(table.assign(seeds=label)[["seeds", *table]])
    return {kind: pd.concat(tables, ignore_index=True) for kind, tables in parts.items()}


def noted(document: str, detectors: pd.DataFrame) -> str:
    """A file of detectors that says what they did in these studies; alarms print it.

    Args:
        document: As `vcpo-bench calibrate` writes it.
        detectors: Of `detector_table`, every study.
    """
    rates = detectors[(detectors["signal"] == ANY) & (detectors["task"] == ALL)]["false_per_1000"].dropna()
    whole = json.loads(document)
    found = {"low": round(rates.min(), 4), "high": round(rates.max(), 4), "studies": len(rates)}
    whole["union"] |= {"elsewhere": found}
    return f"{json.dumps(whole, indent=1)}\n"


def fate_table(name: str, results: Results) -> pd.DataFrame:
    """How the runs of a study ended: `study`, `task`, `runs`, `failed`, `healthy`, `others` (dips, stalls, not judged),
    `configurations` and `mixed`, those of which some runs failed and some did not.
    """
    judged = events(results)
    rows = []
    for task, own in judged.groupby("task", sort=True):
        failed = own["failed"].fillna(False).astype(bool)
        shares = failed.groupby([own[column] for column in CONFIGURATION]).mean()
        row = {"study": name, "task": task, "runs": len(own), "failed": int(failed.sum())}
        healthy = int((own["event"] == "healthy").sum())
        row |= {"healthy": healthy, "others": len(own) - healthy - int(failed.sum())}
        rows.append(row | {"configurations": len(shares), "mixed": int(((shares > 0) & (shares < 1)).sum())})
    return pd.DataFrame(rows)


def supplement(results: Path, folder: Path) -> None:
    """Write the exploratory tables: those of `analyze prediction` on the runs of questions 1 and 2."""
    write_all(analyze_prediction(lagged(of_seeds(load(results / MAIN), SEEDS_READ))), folder)


def write_all(found: Findings, folder: Path) -> None:
    """Write the tables of `analyze prediction`, of those with a row per run the primary signal's, and its sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in found.tables.items():
        if name in RUN_BY_RUN:
            table = table[table["signal"] == "ess"] if "signal" in table else table
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    sentences = "".join(f"{statement.text}\n" for statement in found.statements)
    (folder / SENTENCES).write_text(sentences, encoding="utf-8")
