"""What a plug-in returns has the right shape and is a number, or one line names the part and what it should return.

All axes of the batch are equally long: there a forgotten one broadcasts, and gave a wrong number.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from vcpo_bench.methods import Batch, MethodError, load_plugin, parse_method

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
import torch
from vcpo_bench.methods import *

@dataclass(frozen=True, kw_only=True)
class Own({base}):
    name: ClassVar[str] = "own"

    def {function}(self, ev):
        row = ev.pair().row_log
        token = row.unsqueeze(-1).exp()
        nan = torch.full_like(ev.batch.logp, torch.nan)
        return {returned}
"""
TOKENS = "[..., P, G, 1|T]"


def own(folder: Path, base: str, function: str, returned: str) -> None:
    file = folder / "own.py"
    file.write_text(PLUGIN.format(base=base, function=function, returned=returned))
    load_plugin(file)


@pytest.mark.parametrize(
    ("base", "function", "returned", "said"),
    [
        ("RatioMethod", "terms", "Terms(weight=row.exp())", f"weight is [4, 4]; return {TOKENS}"),
        ("RatioMethod", "terms", "Terms(weight=2.0)", f"weight is a float; return a tensor, {TOKENS}"),
        ("RatioMethod", "terms", "Terms(addend=row)", f"addend is [4, 4]; return {TOKENS}"),
        ("RatioMethod", "terms", "Terms(score=token[0])", f"score is [4, 1]; return {TOKENS}"),
        ("RatioMethod", "terms", "Terms(kept=token / 2)", f"kept is neither 0 nor 1 somewhere; return bool {TOKENS}"),
        ("RatioMethod", "terms", "Terms(capped=token)", f"capped is torch.float64; return bool {TOKENS}"),
        ("RatioMethod", "terms", "Terms(weight=nan)", "weight is not a number (NaN), of evidence that is finite"),
        ("RatioMethod", "terms", "None", "terms is None; return Terms(weight=...)"),
        ("RatioMethod", "terms", "token", "terms is a Tensor; return Terms(weight=...)"),
        ("WeightMethod", "weight", "row", f"weight is [4, 4]; return {TOKENS}"),
        ("Admission", "admit", "None", "admit is None; return a tensor, bool [..., P, G]"),
        ("Admission", "admit", "row", "admit is torch.float64; return bool [..., P, G]"),
        ("Baseline", "advantage", "row.mean()", f"advantage is []; return [..., P, G] or {TOKENS}"),
        ("Baseline", "advantage", "row / 0 * 0", "advantage is not a number (NaN), of evidence that is finite"),
        ("Mask", "keep", "row > 0", f"keep is [4, 4]; return bool {TOKENS}"),
        ("Mask", "keep", "token", f"keep is torch.float64; return bool {TOKENS}"),
        ("Regularizer", "addend", "0.1", f"addend is a float; return a tensor, {TOKENS}"),
        ("Regularizer", "penalty", "row", f"penalty is [4, 4]; return {TOKENS}"),
        ("Regularizer", "entropy", "row", f"entropy is [4, 4]; return {TOKENS}"),
        ("Regularizer", "vocabulary", "nan", "vocabulary is [4, 4, 4]; return [..., P, G, T, V]"),
        ("Aggregation", "factor", "torch.tensor(0.1)", "factor is []; return [..., P, G]"),
        ("Step", "scale", "0.5", "scale is a float; return a tensor, one number a run"),
        ("Step", "scale", "row.exp()", "scale is [4, 4]; return one number a run"),
        ("Step", "scale", "nan.sum()", "scale is nan; return a finite number, 0 or more"),
        ("Step", "scale", "-token.mean() / token.mean()", "scale is -1.0; return a finite number, 0 or more"),
    ],
)
def test_what_is_wrong_is_refused(
    tmp_path: Path, make_batch: Callable[..., Batch], base: str, function: str, returned: str, said: str
) -> None:
    own(tmp_path, base, function, returned)
    expression = "own" if base == "RatioMethod" else "clip+own"
    with pytest.raises(MethodError, match=f"^{re.escape(f'own: {said}')}$"):
        parse_method(expression)(make_batch((4, 4, 4)))


@pytest.mark.parametrize(
    ("base", "function", "returned"),
    [
        ("RatioMethod", "terms", "Terms(weight=torch.where(ev.rows.mask, token, nan), kept=(token > 0).double())"),
        ("RatioMethod", "terms", "Terms(weight=nan, kept=torch.zeros_like(ev.rows.mask))"),
        ("RatioMethod", "terms", "Terms(weight=token.mean((0, 1), keepdim=True), capped=token > 1)"),
        ("Baseline", "advantage", "row"),
        ("Baseline", "advantage", "token"),
        ("Regularizer", "addend", "None"),
        ("Regularizer", "entropy", "token"),
        ("Step", "scale", "row.exp().mean()"),
    ],
)
def test_what_may_be_returned_is_taken(
    tmp_path: Path, make_batch: Callable[..., Batch], base: str, function: str, returned: str
) -> None:
    own(tmp_path, base, function, returned)
    update = parse_method("own" if base == "RatioMethod" else "clip+own")(make_batch((4, 4, 4)))
    assert bool(torch.isfinite(update.coefficients).all())


def test_state_is_of_tensors(tmp_path: Path, make_batch: Callable[..., Batch]) -> None:
    own(tmp_path, "Step", "scale", "ev.state.update(count=1.0) or row.exp().mean()")
    with pytest.raises(MethodError, match=re.escape("clip+own: state['count'] is a float; keep tensors only")):
        parse_method("clip+own")(make_batch((4, 4, 4)))
