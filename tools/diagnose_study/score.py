"""The tables of the study of `diagnose`: what each tool says about runs whose cause or fate is known.

    python tools/diagnose_study/score.py PLANTED RECORDED TRL VERL TABLES

PLANTED, RECORDED, TRL and VERL are folders of runs with `rldoctor.csv`, `rlwatch.csv` and `rlprobe.csv` of `rivals.py`
beside them (`PLANTED.rldoctor.csv` and so on). TABLES receives `speaks.csv`, `causes.csv`, `onsets.csv`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from foreign_runs import PLANTED
from planted_runs import CAUSES

from vcpo_bench.analysis.diagnosis import diagnose, read_run

RIVALS = ("rldoctor", "rlwatch", "rlprobe")
OURS = "vcpo-bench"
FITTING: dict[str, set[str]] = {
    "lag spike": {"kl_drift", "kl_explosion", "KL_BLOWUP", "kl_pathology"},
    "engine noise": {"kl_drift", "kl_explosion", "KL_BLOWUP", "kl_pathology"},
    "length explosion": {"length_hacking", "length_pathology", "REWARD_HACK_LENGTH", "TRUNCATION_STARVE"},
    "entropy loss": {"entropy_collapse", "ENTROPY_COLLAPSE"},
    "zero-variance data": {"advantage_collapse", "DEGENERATE_GROUPS", "ADVANTAGE_COLLAPSE", "REWARD_STD_DEATH"},
    "NaN": {"gradient_pathology", "loss_nan", "gradient_norm_spike", "GRAD_PATHOLOGY"},
    "resume with a jump": {"resume"},
}
"""Findings of the other tools that are counted as the planted cause. A KL finding counts for lag and engine noise."""


def ours(folder: Path) -> pd.DataFrame:
    """What `diagnose` says, in the columns of `rivals.py`: the verdict if it is a fall, and probable causes."""
    rows = []
    for path in sorted(folder.iterdir()):
        form = next((one for one in (".verl.jsonl", ".trl") if path.name.endswith(one)), None)
        if form is None:
            continue
        found = diagnose(read_run(path))
        base = {"run": path.name.removesuffix(form), "form": form}
        fell = found.verdict == "collapsed"
        rows.append(base | {"finding": "collapsed" if fell else "", "step": found.onset})
        causes = [cause for cause in found.causes if cause.standing == "probable"]
        rows += [base | {"finding": cause.name, "step": cause.since} for cause in causes]
    return pd.DataFrame(rows)


def answers(folder: Path) -> dict[str, pd.DataFrame]:
    """Every tool's findings, by tool and form of the log."""
    whole = {OURS: ours(folder)} | {
        tool: pd.read_csv(folder.with_name(f"{folder.name}.{tool}.csv"), keep_default_na=False) for tool in RIVALS
    }
    found: dict[str, pd.DataFrame] = {}
    for tool, table in whole.items():
        for form, part in table.groupby("form"):
            found[f"{tool}, {_FORMS[str(form)]}"] = part
    return found


_FORMS = {".verl.jsonl": "verl log", ".trl": "TRL log", ".columns.csv": "its own calls"}


def speaks(table: pd.DataFrame, tool: str) -> dict[str, bool]:
    """By run, whether the tool raises its voice: a fall for us, a warning for the others."""
    loud = table["finding"].eq("collapsed") if tool.startswith(OURS) else ~table["finding"].isin(["", "error"])
    return {str(run): bool(part.any()) for run, part in loud.groupby(table["run"])}


def cause_of(run: str) -> str:
    """What was planted in a run."""
    return run.rpartition(".")[0].replace("_", " ")


def tables(planted: Path, recorded: Path, trl: Path, verl: Path) -> dict[str, pd.DataFrame]:
    """`speaks`: per tool and set of runs; `causes`: per tool and planted cause; `onsets`: of first findings."""
    loud, causes, onsets = [], [], []
    for tool, table in answers(planted).items():
        said = speaks(table, tool)
        healthy = [value for run, value in said.items() if cause_of(run) == "healthy"]
        broken = [value for run, value in said.items() if cause_of(run) != "healthy"]
        loud.append(_confusion("planted", tool, broken, healthy))
        causes += [{"tool": tool, "planted": cause} | _recovered(table, tool, cause) for cause in list(CAUSES)[1:]]
        onsets.append({"tool": tool} | _errors(table, tool))
    fates = pd.read_csv(recorded / "fates.csv").set_index("run")["event"]
    lost = fates.isin(["collapse", "collapse with rebound", "nan"])
    for tool, table in answers(recorded).items():
        said = speaks(table, tool)
        broken, healthy = (
            [said[run] for run in fates.index[lost]],
            [said[run] for run in fates.index[fates == "healthy"]],
        )
        loud.append(_confusion("recorded", tool, broken, healthy))
    for framework, folder in (("TRL", trl), ("verl", verl)):
        for tool, table in answers(folder).items():
            said = speaks(table, tool)
            loud.append(_confusion(framework, tool, [said["broken"]], [said["healthy"]]))
    return {"speaks": pd.DataFrame(loud), "causes": pd.DataFrame(causes), "onsets": pd.DataFrame(onsets)}


def _confusion(runs: str, tool: str, broken: list[bool], healthy: list[bool]) -> dict[str, object]:
    return {
        "runs": runs,
        "tool": tool,
        "broken": len(broken),
        "broken_spoken": sum(broken),
        "healthy": len(healthy),
        "healthy_spoken": sum(healthy),
    }


def _recovered(table: pd.DataFrame, tool: str, cause: str) -> dict[str, int]:
    names = {CAUSES[cause]} if tool.startswith(OURS) else FITTING[cause]
    runs = {str(run): part for run, part in table.groupby("run") if cause_of(str(run)) == cause}
    named = [part["finding"].isin(names).any() for part in runs.values()]
    return {"runs": len(runs), "named": int(sum(named))}


def _errors(table: pd.DataFrame, tool: str) -> dict[str, object]:
    """How far the first step that a tool names is from where the cause was planted, in the runs that break."""
    steps = pd.to_numeric(table["step"], errors="coerce")
    signs = table[~table["finding"].isin(["", "error", "collapsed"])].assign(step=steps)
    broken = signs[(signs["run"].map(cause_of) != "healthy") & signs["step"].notna()]
    first = broken.groupby("run")["step"].min() - PLANTED
    return {
        "runs_with_a_step": int(first.size),
        "median_error": float(np.median(first)) if first.size else float("nan"),
        "largest_error": float(np.abs(first).max()) if first.size else float("nan"),
    }


if __name__ == "__main__":
    target = Path(sys.argv[5])
    target.mkdir(parents=True, exist_ok=True)
    for title, made in tables(*map(Path, sys.argv[1:5])).items():
        made.to_csv(target / f"{title}.csv", index=False)
        print(made.to_string(index=False))
