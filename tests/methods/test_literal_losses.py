"""Losses of 2026 against their literal form: a loop over rows and tokens in float64, differentiated by autograd."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.methods import Batch, parse_method

Make = Callable[..., Batch]
Row = dict[str, Tensor]
"""Of one row, tokens in play only: `logp` with gradient, `mu`, `prox`, `entropy`, `lag`; and `A`, a number."""

REGIMES = ["near", "far", "extreme", "one token", "one response", "ties"]
"""Ragged rows with holes and empty rows in all of them."""


def batch_of(make_batch: Make, regime: str, seed: int) -> Batch:
    shape = {"one token": (3, 4, 1), "one response": (5, 1, 6)}.get(regime, (3, 4, 7))
    spread = {"near": 0.05, "extreme": 6.0, "ties": 0.3}.get(regime, 0.5)
    batch = make_batch(shape, seed=seed, spread=spread)
    generator = torch.Generator().manual_seed(seed)
    batch.mask[0, 0] = seed % 2 == 0  # empty, or full
    if regime == "ties":
        batch = replace(batch, behavior_logp=batch.logp - (4 * (batch.logp - batch.behavior_logp)).round() / 4)
    advantage = torch.randint(-2, 3, shape[:2], generator=generator).double() * 0.7
    return replace(batch, advantage=advantage.unsqueeze(-1).expand(shape).contiguous())


def rows_of(batch: Batch, logp: Tensor) -> list[Row]:
    rows = []
    for p, g in torch.cartesian_prod(*(torch.arange(n) for n in batch.valid.shape)).tolist():
        inside = batch.mask[p, g]
        if inside.any():
            fields = {"mu": batch.behavior_logp, "prox": batch.proximal_logp, "entropy": batch.entropy}
            row = {name: value[p, g][inside] for name, value in fields.items() if value is not None}
            row |= {"logp": logp[p, g][inside], "lag": batch.now - batch.version[p, g][inside]}
            rows.append(row | {"A": batch.advantage[p, g, 0]})  # type: ignore[index]
    return rows


def ratio(row: Row, to: str = "mu") -> Tensor:
    """With the clamp that every ratio here has: constant beyond 20 nats."""
    return (row["logp"] - row[to]).clamp(-20, 20).exp()


def ppo(r: Tensor, A: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    clipped = torch.minimum(torch.maximum(r, torch.as_tensor(1 - low)), torch.as_tensor(1 + high))
    return -torch.minimum(r * A, clipped * A)


def up(rows: list[Row]) -> Tensor:
    plain = [-row["A"] * (row["logp"] - row["logp"].detach()).exp() for row in rows]
    clipped = [ppo(ratio(row), row["A"], 0.2, 0.2) for row in rows]
    return sum((p if row["A"] > 0 else c).sum() for row, p, c in zip(rows, plain, clipped, strict=True))  # type: ignore[return-value]


def acpo(rows: list[Row]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    ratios = torch.cat([ratio(row) for row in rows])
    current = torch.cat([row["logp"] for row in rows]).detach().exp()
    for row in rows:
        for token, r in zip(row["logp"], ratio(row), strict=True):
            place = min(int(float(token.detach().exp()) * 5), 4)
            same = (current >= place / 5) & ((current < (place + 1) / 5) | (place == 4))
            reach = min(max(0.2 + float((ratios[same].detach().var(unbiased=False) + 1e-8).sqrt()), 0.05), 0.5)
            loss = ppo(r, row["A"], reach, reach)
            total = total + (torch.minimum(loss, -row["A"] * 3) if row["A"] < 0 else loss)
    return total


def holderpo(power: float) -> Callable[[list[Row]], Tensor]:
    def loss(rows: list[Row]) -> Tensor:
        ratios = [ratio(row) for row in rows]
        means = [(r**power).mean() ** (1 / power) if power else r.log().mean().exp() for r in ratios]
        return torch.stack([ppo(s, row["A"], 0.2, 0.2) for s, row in zip(means, rows, strict=True)]).mean()

    return loss


def minirl(anchor: str) -> Callable[[list[Row]], Tensor]:
    def loss(rows: list[Row]) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for row in rows:
            r = ratio(row, anchor).detach()
            off = ((row["A"] > 0) & (r > 1.27)) | ((row["A"] < 0) & (r < 0.8))
            total = total - (~off * ratio(row).detach().clamp(max=5) * row["A"] * row["logp"]).sum()
        return total

    return loss


def estr(rows: list[Row]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        delta = ratio(row).log().detach()
        total = total + ppo(ratio(row), row["A"], 0.2, 0.2)[delta**2 / (row["entropy"] + 0.01) <= 1].sum()
    return total


def ppo_or(rows: list[Row]) -> Tensor:
    signs = [row["A"].sign() for row in rows]
    margins = [(0.2 - s * ratio(row).log()).clamp(min=0) ** 2 * s.abs() for s, row in zip(signs, rows, strict=True)]
    return sum(margin.sum() for margin in margins)  # type: ignore[return-value]


def asympo(rows: list[Row]) -> Tensor:
    losses = [-row["A"] * row["logp"].mean() / -row["logp"].detach().mean() for row in rows]
    return torch.stack(losses).mean()


def spo_fixed(rows: list[Row]) -> Tensor:
    return sum((0.5 if row["A"] < 0 else 1.0) * -row["A"] * row["logp"].sum() for row in rows)  # type: ignore[return-value]


def a3po(rows: list[Row]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        share = (row["lag"] - 1) / row["lag"]
        prox = (row["mu"] + share * (row["logp"] - row["mu"])).detach()
        rho = (prox - row["mu"]).clamp(-20, 20).exp()
        total = total + (rho * ppo(ratio(row | {"prox": prox}, "prox"), row["A"], 0.2, 0.2)).sum()
    return total


LOSSES: dict[str, Callable[[list[Row]], Tensor]] = {
    "up+token-sum": up,
    "acpo+token-sum": acpo,
    "holderpo+seq-mean-token-mean": holderpo(1.0),
    "holderpo(power=-2)+seq-mean-token-mean": holderpo(-2.0),
    "holderpo(power=0)+seq-mean-token-mean": holderpo(0.0),
    "minirl+token-sum": minirl("mu"),
    "minirl(anchor=proximal)+token-sum": minirl("prox"),
    "estr+token-sum": estr,
    "ppo-or+token-sum": ppo_or,
    "asympo+seq-mean-token-mean": asympo,
    "asympo(scale=fixed)+token-sum": spo_fixed,
    "a3po+token-sum": a3po,
}


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("text", LOSSES)
def test_coefficients_are_minus_the_gradient_of_the_loss(make_batch: Make, text: str, regime: str) -> None:
    for seed in range(4):
        batch = batch_of(make_batch, regime, seed)
        logp = batch.logp.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(LOSSES[text](rows_of(batch, logp)), logp)
        found = parse_method(text)(batch).coefficients
        scale = max(1.0, float(gradient.abs().max()))
        assert float((found + gradient).abs().max()) <= 1e-12 * scale, (seed, text)


# -- ACRL: a weight with memory ----------------------------------------------------------------------------------------


def acrl_weight(row: Row, gap: float, first: float) -> Tensor:
    return (0.65 * row["A"].sign() * (1 - gap / first) * ratio(row).log().detach()).clamp(-20, 20).exp()


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("base", ["", "clip+"])
def test_acrl_is_the_gradient_of_its_loss_at_three_updates(make_batch: Make, regime: str, base: str) -> None:
    state: dict[str, Tensor] = {}
    first = 0.0
    for seed in range(3):
        batch = batch_of(make_batch, regime, seed)
        batch = replace(batch, logp=batch.logp.clamp(max=0), behavior_logp=batch.behavior_logp.clamp(max=0))
        logp = batch.logp.clone().requires_grad_()
        rows = rows_of(batch, logp)
        gaps = torch.cat([(row["logp"].exp() - row["mu"].exp()).abs() for row in rows]).detach()
        gap = float(gaps.mean())
        first = first or gap
        loss = torch.zeros((), dtype=torch.float64)
        for row in rows:
            inner = ppo(ratio(row), row["A"], 0.2, 0.2) if base else -row["A"] * row["logp"]
            loss = loss + (acrl_weight(row, gap, first) * inner).sum()
        (gradient,) = torch.autograd.grad(loss, logp)
        update = parse_method(f"{base}acrl+token-sum")(replace(batch, state=state))
        state = dict(update.state)
        scale = max(1.0, float(gradient.abs().max()))
        assert float((update.coefficients + gradient).abs().max()) <= 1e-12 * scale
        assert gap >= 1e-4


def test_acrl_is_plain_until_the_policies_differ(make_batch: Make) -> None:
    batch = make_batch(spread=0.0)
    update = parse_method("acrl+token-sum")(batch)
    assert torch.equal(update.coefficients, parse_method("reinforce+token-sum")(batch).coefficients)
    assert float(update.state["acrl.reference"]) == 0.0
