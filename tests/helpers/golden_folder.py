"""Recorded outputs of reference implementations: how they are laid out, read, and compared with."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vcpo_bench.methods import Batch

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
RTOL, ATOL, LOOSE = 2e-6, 2e-7, 1e-5
"""Reference code adds 1e-8 to counts, lengths and standard deviations, where ours has none: a few ulp of float32
relative (`RTOL`), and relative to the largest number of the array where that is divided by numbers around 0.1
(`ATOL`). `LOOSE`: it does so twice, or squares it (ESS, OPOB, weights of whole rows)."""
FIELDS = {
    "prox_logp": "proximal_logp",
    "ref_logp": "reference_logp",
    "entropy": "entropy",
    "sum_pi_sq": "sum_pi_sq",
}


class Folder:
    """One folder of golden numbers."""

    def __init__(self, path: Path) -> None:
        self.index = json.loads((path / "index.json").read_text())
        self.entries = {f"{entry['family']}:{entry['id']}": entry for entry in self.index["entries"]}
        self.inputs = dict(np.load(path / "inputs.npz"))
        self.path = path
        self._families: dict[str, Any] = {}

    def outputs(self, entry: dict[str, Any]) -> Any:
        family = entry["family"]
        if family not in self._families:
            self._families[family] = np.load(self.path / f"{family}.npz")
        return self._families[family]

    def array(self, entry: dict[str, Any], case: str, name: str) -> torch.Tensor:
        return torch.as_tensor(self.outputs(entry)[f"{entry['id']}/{case}/{name}"])

    def scalar(self, entry: dict[str, Any], case: str, name: str) -> float:
        table = self.outputs(entry)[f"{entry['id']}/scalars"]
        return float(table[entry["cases"].index(case), entry["scalar_names"].index(name)])

    def case(self, case: str) -> dict[str, torch.Tensor]:
        names = self.index["head"]["cases"].get(case) or self.index["head"]["nonfinite_cases"][case]
        return {name: torch.as_tensor(self.inputs[f"{case}/{name}"]) for name in names}


@cache
def folder(path: Path) -> Folder:
    return Folder(path)


MAPPING: dict[str, dict[str, Any]] = json.loads((GOLDEN / "mapping.json").read_text())["entries"]


def batch_of(
    case: dict[str, torch.Tensor], entry: dict[str, Any], spec: dict[str, Any], given: torch.Tensor | None = None
) -> Batch:
    """The case as evidence; `groups` and `advantage` of the mapping say how the reference was called."""
    rows = len(case["rewards"])
    group = case["group"]
    if spec.get("groups") == "pairs":
        group = torch.arange(rows) // 2
    mask = case["mask"] > 0
    optional = {ours: case[theirs] for theirs, ours in FIELDS.items() if theirs in case}
    how = spec.get("advantage", "adv")
    if how == "scaled_adv":
        optional["advantage"] = given
    elif how == "zero":
        optional["advantage"] = torch.zeros_like(case["logp"])
    elif how == "adv":
        source = case["adv_seq"][:, None].expand_as(mask) if "adv_seq" in entry["uses"] else case["adv"]
        optional["advantage"] = source.contiguous()
    norms = spec.get("norms")
    if norms == "linspace":
        optional["score_norm_sq"] = torch.linspace(0.5, 2.0, rows, dtype=torch.float64) ** 4
    return Batch.from_rows(
        logp=case["logp"],
        behavior_logp=case["mu_logp"],
        mask=mask,
        reward=case[spec.get("reward", "rewards")].double(),
        group=group,
        version=case["version"],
        now=spec.get("now", 5),
        **optional,
    )


def close(ours: torch.Tensor, theirs: torch.Tensor, rtol: float = RTOL) -> None:
    """Equal within the tolerances of the catalog where the reference is a number."""
    theirs = theirs.to(ours.dtype)
    number = torch.isfinite(theirs)
    if not number.any():
        return
    scale = float(theirs[number].abs().max())
    gap = (ours - theirs).abs()[number]
    allowed = max(rtol, RTOL) * theirs.abs()[number] + max(ATOL, rtol / 10) * scale
    worst = float((gap - allowed).max())
    assert worst <= 0, f"off by {float(gap.max()):.3g} of {scale:.3g}\nours   {ours}\ntheirs {theirs}"


def has_nonfinite(entry: dict[str, Any], case: dict[str, torch.Tensor]) -> bool:
    """True when a field the entry uses is not finite on a token that carries loss."""
    token_fields = [name for name in entry["uses"] if name in case and case[name].dim() == 2 and name != "mask"]
    return any(bool((~torch.isfinite(case[name]) & (case["mask"] > 0)).any()) for name in token_fields)


def leaky(entry: dict[str, Any], case: dict[str, torch.Tensor]) -> bool:
    """True when a field the entry uses is not finite, wherever that is."""
    return any(bool((~torch.isfinite(case[name])).any()) for name in entry["uses"] if name in case)


def twisted_folder(place: Path, *, wrong: bool, nonfinite: bool) -> str:
    """A folder of the same layout with one entry on one new case: holes, a masked first token, an empty row."""
    key = "verl_policy_loss:vanilla_mu_token-mean"
    shape = (4, 6)
    generator = np.random.default_rng(0)
    mask = np.ones(shape)
    mask[0, 2:4], mask[1, 0], mask[2] = 0, 0, 0
    logp = -generator.uniform(0.1, 2, shape)
    mu_logp = logp - generator.normal(0, 0.5, shape)
    adv = generator.normal(0, 1, shape) * mask
    ratio = np.exp(logp - mu_logp)
    silent = ((adv > 0) & (ratio > 1.2)) | ((adv < 0) & ((ratio < 0.8) | (ratio > 3)))
    gradient = np.where(silent, 0, -adv * ratio) * mask / mask.sum() + wrong
    mu_logp[~mask.astype(bool)] = np.nan
    if nonfinite:
        mu_logp[3, 1] = -np.inf
    case = {"logp": logp, "mu_logp": mu_logp, "prox_logp": logp, "ref_logp": logp, "mask": mask, "adv": adv}
    case |= {"rewards": np.zeros(4), "group": np.array([0, 0, 1, 1]), "version": np.zeros(shape, dtype=np.int64)}
    entry = {"id": key.partition(":")[2], "family": key.partition(":")[0], "cases": ["twisted"], "scalar_names": []}
    entry["uses"] = ["logp", "mu_logp", "adv", "mask"]
    head = {"cases": {}, "nonfinite_cases": {"twisted": {name: list(value.shape) for name, value in case.items()}}}
    (place / "index.json").write_text(json.dumps({"head": head, "entries": [entry]}))
    np.savez(place / "inputs.npz", **{f"twisted/{name}": value for name, value in case.items()})
    np.savez(place / f"{entry['family']}.npz", **{f"{entry['id']}/twisted/dloss_dlogp": gradient})
    return key
