"""Where a method acts: which edge between policies it looks at, what it does there, and over how many tokens.

Measured, not declared: evidence is changed one number at a time, and what answers is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.catalog import parse_method
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.bernoulli import two_tokens

P, G, T = 2, 3, 6
"""Sizes of the batches it is measured on."""
ROW, TOKEN = (0, 1), 2
"""Whose evidence is changed."""
SPREADS = (0.02, 0.07, 0.3, 0.0, 0.6, 0.0)
SHIFTS = (-12.0, -1.5, -0.3, -0.03, 0.03, 0.3, 1.5, 12.0)
TABLE = Path(__file__).with_name("geometry.tsv")
"""What `tools/make_docs.py` has measured of every method that ships."""
POLICIES = ("logp", "behavior_logp", "proximal_logp", "reference_logp")


@dataclass(frozen=True)
class Geometry:
    """What was measured.

    Attributes:
        edges: Of the triangle of sampler, anchor (the proximal policy) and current policy, the edges whose length
            matters: `sampler-current` (engine and lag together), `sampler-anchor`, `anchor-current`; beyond it
            `reference-current`, `lag` (the count of updates) and `weights` (their distance).
        operators: What it does: `clip` (no gradient on the outward side), `mask` (none on either side), `weight`
            (multiplies the advantage), `pull` (acts without an advantage), `entropy`, `step` (scales the learning
            rate), `gradient` (changes it), `admission` (leaves rows out).
        level: The widest set that decides about one token: `token`, `prefix`, `sequence`, `group` or `batch`; empty
            when no ratio does.
    """

    edges: tuple[str, ...]
    operators: tuple[str, ...]
    level: str

    def __str__(self) -> str:
        place = f" on {', '.join(self.edges)}" if self.edges else ""
        return f"{', '.join(self.operators) or 'none'}{place}{f', by {self.level}' if self.level else ''}"


@cache
def geometry_of(expression: str) -> Geometry:
    """Measure the method of an expression; borrowed step scales are any two that differ."""
    method = parse_method(expression)
    others = tuple(part for part in method.extras if part.slot != "aggregation")
    summed = replace(method, extras=(*others, *parse_method("reinforce+token-sum").extras))
    if method.needs_series:
        summed = summed.with_series([0.5, 0.25], 0)
    seen = _observe(summed)
    level = _level(seen.moved)
    return Geometry(_edges(summed, seen.fields), _operators(summed, seen, level), level)


def geometry_text(name: str) -> str:
    """Where a method acts, by its name: read, without torch, if it ships, else measured now."""
    return _measured().get(name) or str(geometry_of(name))


@cache
def _measured() -> dict[str, str]:
    return dict(row.split("\t") for row in TABLE.read_text(encoding="utf-8").splitlines())


@cache
def _probes() -> list[tuple[list[str], Batch]]:
    """Batches from nearly on policy to far off it, each with what is changed in it; see `_changed`."""
    return [_changed(_batch(seed, spread)) for seed, spread in enumerate(SPREADS * 2)]


def _batch(seed: int, spread: float) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def near() -> Tensor:
        width = torch.full((P, G, T), spread, dtype=torch.float64)
        if not spread:  # few tokens are off and the rest is not: what a bound searched per batch needs to act
            width = torch.where(torch.rand(P, G, T, generator=generator) < 0.3, 0.6, 0.02)
        return (logp - width * torch.randn(P, G, T, generator=generator, dtype=torch.float64)).clamp(max=-1e-3)

    logp = -0.2 - torch.rand(P, G, T, generator=generator, dtype=torch.float64)
    logp[(*ROW, TOKEN)] -= 12 * (seed >= len(SPREADS))
    advantage = 0.5 + torch.rand(P, G, 1, generator=generator, dtype=torch.float64)
    sign = (torch.arange(P * G).view(P, G, 1) + seed) % 2 * 2.0 - 1
    return Batch(
        logp=logp,
        behavior_logp=near(),
        proximal_logp=near(),
        reference_logp=near(),
        entropy=torch.rand(P, G, T, generator=generator, dtype=torch.float64),
        sum_pi_sq=torch.full((P, G, T), 0.2, dtype=torch.float64),
        vocabulary_logp=two_tokens(logp),
        behavior_vocabulary_logp=two_tokens(logp - 0.1),
        mask=torch.ones(P, G, T, dtype=torch.bool),
        valid=torch.ones(P, G, dtype=torch.bool),
        reward=(sign > 0).double().squeeze(-1),
        advantage=(advantage * sign).expand(P, G, T).contiguous(),
        score_norm_sq=torch.rand(P, G, generator=generator, dtype=torch.float64),
        parameter_distance=torch.full((P, G), 0.3, dtype=torch.float64),
        void_turn=torch.zeros(P, G, dtype=torch.bool),
        update_norm=torch.tensor(0.7, dtype=torch.float64),
        version=torch.full((P, G, T), 90),
        now=100,
    )


def _changed(batch: Batch) -> tuple[list[str], Batch]:
    """The batch as it is and with one thing changed at a time, along a leading axis; and what was changed."""
    names, copies = [""], [batch]

    def add(name: str, field: str, value: Tensor) -> None:
        names.append(name)
        change: dict[str, Any] = {field: value}
        copies.append(replace(batch, **change))

    for policy in POLICIES:
        for shift in SHIFTS:
            value = getattr(batch, policy).clone()
            value[(*ROW, TOKEN)] = (value[(*ROW, TOKEN)] - shift).clamp(max=-1e-3)
            add(policy, policy, value)
    for version in (70, 95, 100):
        add("version", "version", torch.full((P, G, T), version))
    add("weights", "parameter_distance", torch.full((P, G), 0.9, dtype=torch.float64))
    add("weights", "update_norm", torch.tensor(2.1, dtype=torch.float64))
    fields_of_batch = [each.name for each in fields(batch) if isinstance(getattr(batch, each.name), torch.Tensor)]
    stacked: dict[str, Any] = {f: torch.stack([getattr(one, f) for one in copies]) for f in fields_of_batch}
    return names, replace(batch, **stacked)


@dataclass
class _Seen:
    """What answered: fields that matter, `[P, G, T]` tokens that the changed one decides about, and more."""

    fields: set[str]
    moved: Tensor
    silent: bool = False
    ever_silent: bool = False
    entropy: bool = False


def _observe(method: Method) -> _Seen:
    seen = _Seen(set(), torch.zeros(P, G, T, dtype=torch.bool))
    for names, copies in _probes():
        update = method(copies)
        base = update.coefficients[0]
        seen.silent |= bool((base == 0).any())
        seen.ever_silent |= bool((update.coefficients == 0).any())
        seen.entropy |= update.entropy_coefficients is not None
        different = ~torch.isclose(update.coefficients, base, rtol=1e-9, atol=1e-12)
        step = ~torch.isclose(update.step_scale, update.step_scale[0], rtol=1e-9)
        different |= step[:, None, None, None]  # the step is everyone's
        for place, name in enumerate(names):
            if bool(different[place].any()):
                seen.fields.add(name)
                seen.moved |= different[place] & (name in POLICIES[1:])
    return seen


def _edges(method: Method, fields: set[str]) -> tuple[str, ...]:
    found = []
    if {"behavior_logp", "proximal_logp"} <= fields:
        found += ["sampler-anchor", "anchor-current"] if "logp" in fields else ["sampler-anchor"]
    elif "behavior_logp" in fields:
        found.append("sampler-current")
    elif "proximal_logp" in fields:
        found.append("anchor-current")
    names = {"reference_logp": "reference-current", "version": "lag", "weights": "weights"}
    drift = {"weights"} if method.compensate is not None else set()
    return (*found, *(edge for name, edge in names.items() if name in fields | drift))


def _level(moved: Tensor) -> str:
    """The widest set that answered to a change of the one token."""
    others = [row for row in range(G) if row != ROW[1]]
    own = moved[ROW]
    widest_first = {
        "batch": moved[1:],
        "group": moved[ROW[0], others],
        "sequence": own[:TOKEN],
        "prefix": own[TOKEN + 1 :],
        "token": own[TOKEN],
    }
    return next((name for name, answered in widest_first.items() if bool(answered.any())), "")


def _operators(method: Method, seen: _Seen, level: str) -> tuple[str, ...]:
    up, down = _response(method, 1.0)
    one_sided, always = (up == 0) ^ (down == 0), (up == 0) & (down == 0)
    by_sign = bool(one_sided[len(up) // 2])  # silent at a ratio of 1: the sign decides, not the ratio
    idle = torch.cat(_response(method, 0.0))
    sizes = (torch.cat([up, down]) - idle).abs()
    sizes = sizes[sizes > 0]
    on_gradient = method.combine is not None or method.compensate is not None
    found = {
        "admission": bool(method.parts.admissions),
        "clip": bool(one_sided.any()) and not by_sign,
        "mask": bool(always.any()) or by_sign or (seen.silent and not bool(one_sided.any())),
        "weight": len(sizes) > 0 and float(sizes.max() - sizes.min()) > 1e-9,
        "pull": bool(idle.any()),
        "entropy": seen.entropy,
        "step": method.parts.step.name != "constant" and not on_gradient,
        "gradient": on_gradient,
    }
    if level and not any(found.values()):
        found["mask" if seen.ever_silent else "weight"] = True
    return tuple(name for name in found if found[name])


def _response(method: Method, size: float) -> tuple[Tensor, Tensor]:
    """`[n]` coefficients of one-token rows against their log-ratio, with a good and a bad row in each batch."""
    logs = torch.linspace(-3, 3, 61, dtype=torch.float64).view(-1, 1, 1, 1).expand(-1, 1, 2, 1)
    behavior = torch.full_like(logs, 0.02).log()
    sign = torch.tensor([1.0, -1.0], dtype=torch.float64).view(1, 1, 2, 1).expand_as(logs)
    rows = torch.ones(logs.shape[:-1], dtype=torch.float64)
    batch = Batch(
        logp=behavior + logs,
        behavior_logp=behavior,
        proximal_logp=behavior,
        reference_logp=behavior,
        entropy=torch.ones_like(behavior),
        sum_pi_sq=torch.full_like(behavior, 0.1),
        vocabulary_logp=two_tokens(behavior + logs),
        behavior_vocabulary_logp=two_tokens(behavior),
        mask=torch.ones_like(behavior, dtype=torch.bool),
        valid=rows.bool(),
        reward=(sign > 0).double().squeeze(-1),
        advantage=size * sign,
        score_norm_sq=rows,
        parameter_distance=rows,
        void_turn=torch.zeros_like(rows, dtype=torch.bool),
        update_norm=1.0,
        version=torch.zeros_like(behavior, dtype=torch.int64),
        now=1,
    )
    found = method(batch).coefficients[:, 0, :, 0]
    return found[:, 0], found[:, 1]
