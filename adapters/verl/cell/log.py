"""The log of verl's file logger as the tables of a cell."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcpo_bench.adapters.verl.cell.prompts import SOURCE
from vcpo_bench.adapters.verl.names import LAG_SHARE
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.training.learner_settings import warmed
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.records import EVALS_FILE, LAGS_FILE, STEPS_FILE

Row = Mapping[str, float]
"""One line of the log: numbers by verl's names; one that is not finite is NaN."""

OLDEST, NEWEST = "training/off_policy/trajectory_staleness_worst/", "training/off_policy/trajectory_staleness/"
"""Updates since the weights that wrote a trajectory's oldest and its newest token."""
NAMES = {
    "batch_reward": ("critic/score/mean",),
    "ess_ratio": ("vcpo_bench/ess_ratio",),
    "ess_ratio_used": ("vcpo_bench/ess_ratio_used",),
    "log_weight_max": ("monitor/max_log_weight",),
    **{f"log_weight_q{percent}": (f"monitor/log_weight_q{percent}",) for percent in ("05", "25", "50", "75", "95")},
    "log_weight_var": ("monitor/log_weight_var",),
    "entropy": ("actor/entropy",),
    "grad_norm": ("actor/grad_norm",),
    "share_clipped": ("vcpo_bench/share_clipped", "actor/vcpo_bench/share_clipped"),
    "share_masked": ("vcpo_bench/share_masked", "actor/vcpo_bench/share_masked"),
    "lag_min": (f"{OLDEST}min",),
    "lag_mean": (f"{OLDEST}mean",),
    "lag_max": (f"{OLDEST}max",),
    "length_mean": ("response_length/mean",),
    "seconds_sample": ("timing_s/gen",),
    "seconds_score": ("timing_s/old_log_prob",),
}
"""Columns of `steps.parquet`, and the entries of verl's log that hold them, the first that is there."""
UPDATE = ("timing_s/adv", "timing_s/update_actor")
REWARD = tuple(f"val-core/{SOURCE}/{name}/mean@1" for name in ("acc", "reward"))
NOT_FINITE = "evidence"
"""In the column `nonfinite`: verl's log does not say of what."""


def read_lines(path: Path, offset: int) -> tuple[list[tuple[int, Row]], int]:
    """The whole lines of a log from a position on, each with verl's number of its step; and the position behind them.

    Args:
        path: The log; there may be none yet.
        offset: Where to begin, in bytes.
    """
    if not path.exists():
        return [], offset
    with path.open("rb") as file:
        file.seek(offset)
        text, _, _ = file.read().rpartition(b"\n")
    lines = [json.loads(line) for line in text.splitlines()]
    return [(line["step"], _numbers(line["data"])) for line in lines], offset + len(text) + bool(text)


def _numbers(data: Mapping[str, Any]) -> Row:
    return {name: math.nan if one is None else float(one) for name, one in data.items() if _is_number(one)}


def _is_number(one: object) -> bool:
    return one is None or (isinstance(one, (int, float)) and not isinstance(one, bool))


def record(recorder: StepRecorder, config: CellConfig, step: int, row: Row) -> None:
    """Record one line of the log.

    Args:
        recorder: The tables of the cell.
        config: The cell.
        step: verl's number of the step: updates made when the line was written.
        row: The line.
    """
    if step > recorder.updates:
        recorder.tables[STEPS_FILE].append(_step_row(config, step - 1, row))
        for lag in _lag_rows(config, step - 1, row):
            recorder.tables[LAGS_FILE].append(lag)
    reward = _first(row, REWARD)
    if reward is not None:
        seconds = row.get("timing_s/testing")
        recorder.tables[EVALS_FILE].append({"step": step, "sampled_reward": reward, "seconds": seconds})


def _first(row: Row, names: tuple[str, ...]) -> float | None:
    return next((row[name] for name in names if name in row), None)


def _step_row(config: CellConfig, step: int, row: Row) -> dict[str, Any]:
    """A row of `steps.parquet`; what verl's log does not say is left out."""
    known: dict[str, Any] = {name: _first(row, entries) for name, entries in NAMES.items()}
    scale = row.get("vcpo_bench/step_scale", 1.0)
    skipped = row.get("vcpo_bench/step_skipped", 0.0) or row.get("actor/vcpo_bench/not_finite", 0.0)
    if known["lag_max"] is not None:
        known["version_oldest"] = step - int(known["lag_max"])
        known["version_newest"] = step - int(row.get(f"{NEWEST}min", known["lag_min"]))
    for name in ("lag_min", "lag_max"):
        known[name] = None if known[name] is None else int(known[name])
    return known | {
        "step": step,
        "sampled_reward": None if config.staleness else known["batch_reward"],
        "grad_norm_clipped": None if known["grad_norm"] is None else min(known["grad_norm"], GRAD_CLIP),
        "step_scale": scale,
        "lr": warmed(config.lr, config.lr_warmup, step) * scale,
        "filling": step < config.staleness,
        "nonfinite": NOT_FINITE if skipped else "",
        "seconds_update": sum(row.get(name, 0.0) for name in UPDATE),
    }


def _lag_rows(config: CellConfig, step: int, row: Row) -> Iterator[dict[str, int | None]]:
    """How many trajectories had each lag: nothing where they differ and verl's own trainer, which does not say, ran."""
    shares = {int(name.removeprefix(LAG_SHARE)): one for name, one in row.items() if name.startswith(LAG_SHARE)}
    low, high = (row.get(f"{OLDEST}{name}") for name in ("min", "max"))
    if not shares and low is not None and low == high:
        shares = {int(low): 1.0}
    count = config.prompts * config.responses
    for lag, share in sorted(shares.items()):
        yield {"step": step, "lag": lag, "trajectories": round(share * count), "tokens": None}
