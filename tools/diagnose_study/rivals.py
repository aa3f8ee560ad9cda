"""What another tool says about the runs of a folder, with its authors' settings; run in that tool's own environment.

    python tools/diagnose_study/rivals.py TOOL RUNS OUT.csv        TOOL: rldoctor, rlwatch or rlprobe

A row per finding: run, form, finding, severity, step (empty: the tool names none). A run it says nothing about has a
row without a finding; one that it cannot read has `error`.
"""

from __future__ import annotations

import csv
import logging
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Said = tuple[str, str, str]
"""Finding, severity, step."""
SERIOUS = {"warning", "critical", "warn"}


def rldoctor(form: Path) -> Iterator[Said]:
    """What rldoctor 0.2.0 says: WARNING or worse."""
    from rl_doctor import diagnose, load_run

    run = load_run(str(form / "trainer_state.json" if form.is_dir() else form))
    for one in diagnose(run).findings:
        if one.severity.name.lower() in SERIOUS:
            yield one.detector, one.severity.name.lower(), ""  # it names no step at which anything began


def rlwatch(form: Path) -> Iterator[Said]:
    """What rlwatch 0.5.1 says: every alert its manager would send."""
    from rlwatch.config import RLWatchConfig
    from rlwatch.core import RLWatch

    with tempfile.TemporaryDirectory() as folder:
        config = RLWatchConfig()
        config.storage.log_dir = folder
        monitor = RLWatch(config)
        for row in _rows(form):
            alerts = monitor.log_step(
                int(row["step"]),
                entropy=row.get("entropy"),
                kl_divergence=row.get("kl_mu_theta_k3"),
                reward_mean=row.get("reward"),
                loss=row.get("loss"),
                clip_fraction=row.get("share_clipped"),
                grad_norm=row.get("grad_norm"),
            )
            for one in alerts:
                yield one.detector, one.severity, str(one.step)


def rlprobe(form: Path) -> Iterator[Said]:
    """What rlprobe 0.1.0 says: warn or critical."""
    from rlprobe.doctor import diagnose
    from rlprobe.recorder import Recorder

    names = {
        "reward": "reward_mean",
        "loss": "loss",
        "kl_mu_theta_k3": "kl_mean",
        "entropy": "entropy_mean",
        "share_clipped": "clip_fraction",
        "grad_norm": "grad_norm",
        "length_mean": "completion_len_mean",
        "truncated_share": "truncation_rate",
        "zero_variance_share": "zero_variance_group_frac",
    }
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(folder, algorithm="grpo") as recorder:
            for row in _rows(form):
                recorder.log_step(int(row["step"]), **{names[name]: row[name] for name in names if name in row})
            recorder.flush(60.0)
        for one in diagnose(folder):
            if one.severity in SERIOUS:
                yield one.signature_id, one.severity, "" if one.first_step is None else str(one.first_step)


def _rows(form: Path) -> Iterator[dict[str, float]]:
    """The plain columns; a NaN of an evaluation that was not made is left out, others are handed on."""
    with form.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: float(value) if value else math.nan for name, value in row.items()}
            yield {name: value for name, value in numbers.items() if name != "eval_reward"}


TOOLS: dict[str, tuple[Callable[[Path], Iterator[Said]], tuple[str, ...]]] = {
    "rldoctor": (rldoctor, (".verl.jsonl", ".trl")),
    "rlwatch": (rlwatch, (".columns.csv",)),
    "rlprobe": (rlprobe, (".columns.csv",)),
}


def main(tool: str, runs: Path, out: Path) -> None:
    """Ask one tool about every run."""
    ask, forms = TOOLS[tool]
    rows: list[tuple[Any, ...]] = [("run", "form", "finding", "severity", "step")]
    for path in sorted(runs.iterdir()):
        form = next((one for one in forms if path.name.endswith(one)), None)
        if form is None:
            continue
        name = path.name.removesuffix(form)
        try:
            said = list(ask(path))
        except Exception as error:  # whatever it raises is its answer
            said = [("error", type(error).__name__, "")]
        rows += [(name, form, *one) for one in said or [("", "", "")]]
    with out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
