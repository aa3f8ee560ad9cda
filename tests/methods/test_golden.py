"""Reference implementations' numbers are reproduced by registered methods and parts.

`tests/golden/mapping.json` says which expression answers which entry. A folder of further cases (`index.json`,
`inputs.npz`, one `.npz` per family) is checked against the same mapping by
`pytest tests/methods/test_golden.py --golden DIR`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from golden_folder import (
    GOLDEN,
    LOOSE,
    MAPPING,
    RTOL,
    Folder,
    batch_of,
    close,
    folder,
    has_nonfinite,
    leaky,
    twisted_folder,
)

from vcpo_bench.methods import Batch, EvidenceView, NonFiniteEvidence, WeightMethod, parse_method
from vcpo_bench.methods.core.ess import ess_ratio_of_logs
from vcpo_bench.methods.core.proximal import approximate_proximal
from vcpo_bench.methods.fipo import Fipo
from vcpo_bench.methods.parts.opob import Opob
from vcpo_bench.methods.psis import pareto_smooth
from vcpo_bench.methods.vtrace import Vtrace


def evidence_of(batch: Batch, text: str) -> tuple[Any, EvidenceView]:
    method = parse_method(text)
    return method, method.evidence(batch)


def check_coefficients(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    update = parse_method(spec["expression"])(batch)
    close(-batch.to_rows(update.coefficients), folder.array(entry, case, spec.get("output", "dloss_dlogp")))


def masked(batch: Batch, value: torch.Tensor) -> torch.Tensor:
    return batch.to_rows(value.expand(batch.mask.shape).double() * batch.mask)


def check_weights(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    method, ev = evidence_of(batch, spec["expression"])
    assert isinstance(method, WeightMethod)
    theirs = folder.array(entry, case, spec.get("output", "weights"))
    close(masked(batch, method.weight(ev)), theirs * batch.to_rows(batch.mask))
    if method.parts.masks and f"{entry['id']}/{case}/mask" in folder.outputs(entry):
        check_mask(folder, entry, case, spec, batch)


def check_mask(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    method, ev = evidence_of(batch, spec["expression"])
    keep = batch.mask
    for mask in method.parts.masks:
        keep = keep & mask.keep(ev)
    theirs = folder.array(entry, case, "mask").reshape(len(batch.to_rows(batch.valid)), -1)
    close(masked(batch, keep), (theirs * batch.to_rows(batch.mask)).double())


def check_advantages(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    _, ev = evidence_of(batch, spec["expression"])
    theirs = folder.array(entry, case, "advantages")
    ours = masked(batch, ev.advantage)
    if theirs.dim() == 1:
        ours = batch.to_rows(ev.advantage.squeeze(-1))
    close(ours, theirs)


def check_step(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    scale = parse_method(spec["expression"])(batch).step_scale
    used, base = folder.array(entry, case, "lr_used"), folder.array(entry, case, "lr_base")
    close(scale.reshape(1), (used / base).reshape(-1)[:1], LOOSE)


def check_ess(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    _, ev = evidence_of(batch, "reinforce")
    logs = ev.pair().row_log
    close(batch.to_rows(logs.exp()), folder.array(entry, case, "seq_is").reshape(-1), LOOSE)
    raw = torch.tensor([folder.scalar(entry, case, "ess_ratio")])
    if float(logs.max()) > -6:  # the reference adds 1e-8 to a sum of squares: ours has no such scale
        close(ess_ratio_of_logs(logs, ev.rows.valid).reshape(1), raw, LOOSE)
    released = parse_method("reinforce+ess(rule=linear,space=raw)")(batch).step_scale
    close(released.reshape(1), raw.clamp(max=1.0), LOOSE)


def check_opob(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    _, ev = evidence_of(batch, spec["expression"])
    baseline = parse_method(spec["expression"]).parts.baseline
    assert isinstance(baseline, Opob)
    ours = baseline.baseline(ev).expand(ev.rows.valid.shape)
    theirs = folder.array(entry, case, "baseline_per_group").reshape(-1)
    per_group = ours[:, 0] if baseline.scope == "group" else ours.reshape(-1)[:1]
    close(per_group, theirs, LOOSE)


def check_opob_end_to_end(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    score = folder.array(entry, case, "score_grads").double()
    norms = torch.zeros(batch.valid.numel(), dtype=torch.float64)
    lengths = batch.to_rows(batch.mask).sum(-1, keepdim=True)
    score = score.flatten(1) * lengths  # the reference's are means over the tokens of a row
    norms[batch.rows] = (score**2).sum(-1)
    evidence = {name: getattr(batch, name) for name in ("logp", "behavior_logp", "mask", "valid", "reward", "version")}
    own = Batch(**evidence, now=batch.now, rows=batch.rows, score_norm_sq=norms.reshape(batch.valid.shape))
    update = parse_method(spec["expression"])(own)
    per_row = own.to_rows(update.coefficients)[torch.arange(len(score)), own.to_rows(own.mask).int().argmax(-1)]
    ours = (per_row[:, None] * score).sum(0)
    close(ours, folder.array(entry, case, "accumulated_gradient").reshape(-1), LOOSE)


def check_psis(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: None) -> None:
    smoothed, shape = pareto_smooth(folder.array(entry, case, "log_weights_in"))
    close(smoothed, folder.array(entry, case, "log_weights_out"), LOOSE)
    assert shape == pytest.approx(folder.scalar(entry, case, "khat"), rel=RTOL)


def check_vtrace(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    method, ev = evidence_of(batch, spec["expression"])
    assert isinstance(method, Vtrace)
    values, _ = method.targets(ev)
    ev.apply_weight(None)
    terms = method.terms(ev)
    theirs = folder.array(entry, case, "vs")
    theirs = theirs.T if theirs.shape != batch.to_rows(batch.mask).shape else theirs
    close(masked(batch, values), theirs * batch.to_rows(batch.mask))
    pg = folder.array(entry, case, "pg_advantages")
    pg = pg.T if pg.shape != theirs.shape else pg
    assert terms.score is not None
    close(masked(batch, terms.score), pg * batch.to_rows(batch.mask))


def check_fipo(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    method, ev = evidence_of(batch, spec["expression"])
    assert isinstance(method, Fipo)
    close(
        masked(batch, method.influence(ev)), folder.array(entry, case, "influence_weight") * batch.to_rows(batch.mask)
    )


def check_proximal(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    _, ev = evidence_of(batch, "reinforce")
    for kind, theirs in (("loglinear", "loglinear"), ("linear", "linear"), ("behavior", "rollout")):
        ours = masked(batch, approximate_proximal(ev, kind))
        close(ours, folder.array(entry, case, theirs) * batch.to_rows(batch.mask))


def check_metrics(folder: Folder, entry: dict[str, Any], case: str, spec: dict[str, Any], batch: Batch) -> None:
    """The definitions of the off-policy metrics that ours share: k1 and k3 of the sampler against the trainer."""
    logs = batch.to_rows(batch.proximal_logp - batch.behavior_logp)
    mask = batch.to_rows(batch.mask)
    values = {"kl": -logs, "k3_kl": logs.exp() - 1 - logs}
    for name, value in values.items():
        ours = (value * mask).sum() / mask.sum()
        close(ours.reshape(1), torch.tensor([folder.scalar(entry, case, f"metric:{name}")], dtype=ours.dtype), LOOSE)


CHECKS = {
    name.removeprefix("check_"): function for name, function in list(globals().items()) if name.startswith("check_")
}


def padding_changes_nothing(spec: dict[str, Any], batch: Batch) -> None:
    """Our answer is that of the same batch with harmless numbers on the padding."""
    method = parse_method(spec["expression"])
    fields = ("logp", "behavior_logp", "proximal_logp", "reference_logp")
    tidy = {name: torch.where(batch.mask, getattr(batch, name), -1.0) for name in fields}
    ours, theirs = method(batch), method(replace(batch, **tidy))
    assert torch.equal(ours.coefficients, theirs.coefficients)
    assert torch.equal(ours.step_scale, theirs.step_scale)


def run(place: Path, key: str, case: str) -> None:
    data, spec = folder(place), MAPPING[key]
    entry = data.entries[key]
    check = CHECKS[spec["check"]]
    if spec["check"] == "psis":
        check(data, entry, case, spec, None)
        return
    inputs = data.case(case)
    given = data.array(entry, case, "scaled_adv") if spec.get("advantage") == "scaled_adv" else None
    batch = batch_of(inputs, entry, spec, given)
    if has_nonfinite(entry, inputs) and "nonfinite=" not in spec.get("expression", ""):
        with pytest.raises(NonFiniteEvidence):
            check(data, entry, case, spec, batch)
        return
    if "leaks" in spec and leaky(entry, inputs):
        padding_changes_nothing(spec, batch)
        return
    check(data, entry, case, spec, batch)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "golden_entry" not in metafunc.fixturenames:
        return
    place = Path(metafunc.config.getoption("--golden", default=None) or GOLDEN)
    found = [pytest.param((place, key), id=key) for key in folder(place).entries]
    metafunc.parametrize("golden_entry", found)


def test_entry_is_reproduced(golden_entry: tuple[Path, str]) -> None:
    place, key = golden_entry
    entry = folder(place).entries[key]
    spec = MAPPING[key]
    if "not_reproduced" in spec:
        assert spec["not_reproduced"], "an exception needs a reason"
        return
    skipped = {*spec.get("skip", {}), *(entry.get("ties_arbitrary_in") or [])}
    for case in entry["cases"]:
        if case not in skipped:
            try:
                run(place, key, case)
            except AssertionError as error:
                raise AssertionError(f"{key} on {case} as {spec.get('expression')}: {error}") from None


def test_every_entry_is_mapped_and_few_are_exceptions() -> None:
    assert set(MAPPING) == set(folder(GOLDEN).entries)
    assert sum("not_reproduced" in spec for spec in MAPPING.values()) <= 10
    assert len(MAPPING) == 543


def test_a_folder_of_new_cases_is_checked(tmp_path: Path) -> None:
    run(tmp_path, twisted_folder(tmp_path, wrong=False, nonfinite=False), "twisted")


def test_a_wrong_number_in_a_folder_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="off by"):
        run(tmp_path, twisted_folder(tmp_path, wrong=True, nonfinite=False), "twisted")


def test_a_token_that_is_no_number_must_be_refused(tmp_path: Path) -> None:
    run(tmp_path, twisted_folder(tmp_path, wrong=False, nonfinite=True), "twisted")
