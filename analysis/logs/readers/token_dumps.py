"""Token dumps of NeMo-RL and prime-rl: exact sequence weights, and from these ESS, largest share and tail index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnostics.ess import kish_ess, max_weight_ess
from vcpo_bench.analysis.diagnostics.pareto_tail import pareto_k
from vcpo_bench.analysis.logs.readers.jsonl import objects
from vcpo_bench.analysis.logs.rows import LogRows
from vcpo_bench.analysis.logs.values import number
from vcpo_bench.progress import track

Array = NDArray[np.float64]

NEMO = re.compile(r"train_data_step(\d+)\.jsonl")
PRIME = re.compile(r"step_(\d+)/rank_\d+\.jsonl")
_NOW, _THEN = ("prev_logprobs", "trainer_logprobs"), ("generation_logprobs", "inference_logprobs")
_MASKS = ("token_loss_mask", "loss_mask")
_LARGEST_LOG_RATIO = 80.0


def dump_step(path: Path) -> int | None:
    """The step a dump is of; None: the file is no dump."""
    found = NEMO.fullmatch(path.name) or PRIME.fullmatch(f"{path.parent.name}/{path.name}")
    return int(found.group(1)) if found else None


def read_dumps(paths: list[Path], rows: LogRows) -> None:
    """Read the dumps of one run; the files of one step are pooled."""
    by_step: dict[int, list[Path]] = {}
    for path in paths:
        step = dump_step(path)
        if step is not None:
            by_step.setdefault(step, []).append(path)
    for step in sorted(by_step):
        sequences = [
            one for path in by_step[step] for row in objects(path, rows) if (one := _sequence(row)) is not None
        ]
        if sequences:
            with np.errstate(invalid="ignore", over="ignore"):
                rows.add(_statistics(sequences), "token dumps", float(step), "step")


class DumpGaps(NamedTuple):
    """How far sampler and trainer are apart in the sequences of one dump.

    Attributes:
        step: The step it is of.
        file: Its name within the run.
        gaps: [n] root mean square, over the tokens that carry loss, of the difference of log-probabilities, in nats.
    """

    step: int
    file: str
    gaps: Array


def dump_gaps(folder: Path) -> list[DumpGaps]:
    """The gaps of every dump in a folder, by step and name; files without both log-probabilities are left out."""
    found = []
    dumps = [(step, path) for path in folder.rglob("*.jsonl") if (step := dump_step(path)) is not None]
    for step, path in track(dumps, "reading dumps", len(dumps)):
        known = (_sequence(row) for row in objects(path, LogRows(keep=lambda _: False)))
        gaps = [float(np.sqrt(np.square(one[0]).mean())) for one in known if one is not None]
        if gaps:
            found.append(DumpGaps(step, str(path.relative_to(folder)), np.array(gaps)))
    return sorted(found, key=lambda one: (one.step, one.file))


def _sequence(row: dict[str, Any]) -> tuple[Array, float] | None:
    """Log-ratios of the tokens that carry loss, and the reward (NaN: not in the dump); None: not usable."""
    now, then, mask = (_first(row, names) for names in (_NOW, _THEN, _MASKS))
    if now is None or then is None or now.size != then.size:
        return None
    counts = np.ones(now.size, dtype=bool) if mask is None or mask.size != now.size else mask > 0
    sample = row.get("sample_loss_mask", 1.0)
    if not counts.any() or (isinstance(sample, int | float) and not sample):
        return None
    reward = row.get("rewards", row.get("reward"))
    value = number(reward)
    with np.errstate(invalid="ignore", over="ignore"):
        return (now - then)[counts], float("nan") if value is None else value


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Array | None:
    for name in names:
        if isinstance(row.get(name), list):
            try:
                return np.asarray(row[name], dtype=np.float64).ravel()
            except (TypeError, ValueError, OverflowError):
                return None
    return None


def _statistics(sequences: list[tuple[Array, float]]) -> dict[str, float]:
    tokens = np.concatenate([ratios for ratios, _ in sequences])
    log_weights = np.array([ratios.sum() for ratios, _ in sequences])
    rewards = np.array([reward for _, reward in sequences])
    share = float(1 / (max_weight_ess(log_weights) * log_weights.size))
    row = {
        "ess_ratio": float(kish_ess(log_weights)),
        "max_share": share,
        "log_weight_max": float(log_weights.max()),
        "log_weight_var": float(log_weights.var()),
        "weight_mean": float(np.exp(np.minimum(log_weights, _LARGEST_LOG_RATIO)).mean()),
        "kl_mu_theta_k1": float(-tokens.mean()),
        "kl_mu_theta_k3": float((np.expm1(np.minimum(tokens, _LARGEST_LOG_RATIO)) - tokens).mean()),
        "length_mean": float(np.mean([ratios.size for ratios, _ in sequences])),
    }
    if np.isfinite(rewards).any():
        row["reward"] = float(np.nanmean(rewards))
    k_hat = float(pareto_k(log_weights))
    if np.isfinite(k_hat):
        row["pareto_k"] = k_hat
    return row
