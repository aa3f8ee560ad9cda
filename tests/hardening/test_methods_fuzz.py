"""Every registered method on hostile batches: finite coefficients, or an error that says what is wrong.

`HARDENING=long` draws many more batches per method.
"""

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from method_expressions import settings_of

from vcpo_bench.methods import METHODS, Batch, BatchError, MethodError, Update, parse_method

EXAMPLES = 400 if os.environ.get("HARDENING") == "long" else 6
GIANT = 3e38  # nearly the largest float32
TINY = 1e-45  # the smallest float32 above 0
LOGPS = (0.0, -1e-7, -TINY, -0.5, -3.0, -90.0, -1e4, -GIANT, 1e-3)
LOG_RATIOS = (
    0.0, 0.0, 0.1, -0.1, 1e-7, -1e-7, TINY, 1.0, -1.0, 19.9, 20.0, -20.1, 90.0, -90.0, 1e4, -1e4, GIANT, -GIANT,
)  # fmt: skip
REWARDS = (0.0, 1.0, -1.0, 0.5, TINY, -TINY, 1e-300, 1e-8, 1e6, 1e12, -1e12, 1e13, GIANT, -GIANT, 1e300)
POSITIVE = (0.0, TINY, 1e-8, 0.1, 1.0, 1e4, GIANT, 1e300)
FAR = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a batch of at most two runs of 3 x 4 x 4 tokens."""
    shape = (*draw(st.sampled_from([(), (), (2,)])), draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    shape = (*shape, draw(st.integers(1, 4)))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))

    def tensor(values: Any, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        places = torch.randint(len(values), shape, generator=generator)
        return torch.tensor(values, dtype=torch.float64)[places].to(dtype)

    mild = draw(st.sampled_from(["nothing", "policies", "rewards"]))
    logs = LOG_RATIOS[:9] if mild == "policies" else LOG_RATIOS
    rewards = REWARDS[:9] if mild == "rewards" else REWARDS
    logp = tensor(LOGPS[3:5] if mild == "policies" else LOGPS, shape, dtype)
    return {
        "logp": logp,
        "behavior_logp": logp - tensor(logs, shape, dtype),
        "proximal_logp": logp - tensor(logs, shape, dtype),
        "reference_logp": logp - tensor(logs, shape, dtype),
        "entropy": tensor(POSITIVE, shape, torch.float64),
        "sum_pi_sq": tensor((TINY, 0.1, 1.0), shape, dtype),
        "mask": tensor((True, True, False), shape, torch.bool),
        "valid": tensor((True, True, True, False), shape[:-1], torch.bool),
        "reward": tensor(rewards, shape[:-1], draw(st.sampled_from([dtype, torch.float64]))),
        "score_norm_sq": tensor(POSITIVE, shape[:-1], torch.float64),
        "parameter_distance": tensor((0.0, *POSITIVE), shape[:-1], torch.float64),
        "update_norm": draw(st.sampled_from([0.0, *POSITIVE])),
        "version": tensor((0, 3, 9, -1, 2**40), shape, torch.int64),
        "now": draw(st.sampled_from([0, 5, 2**40])),
        "advantage": tensor(rewards, shape, torch.float64) if draw(st.integers(0, 3)) == 0 else None,
    }


def check(update: Update, batch: Batch) -> None:
    assert update.coefficients.dtype == batch.logp.dtype
    assert torch.isfinite(update.coefficients).all()
    assert (update.coefficients[~(batch.mask & batch.valid.unsqueeze(-1))] == 0).all()
    assert ((update.step_scale >= 0) & (update.step_scale <= 1)).all()
    for name in ("share_clipped", "share_masked", "ess_ratio"):
        value = update.metrics[name]
        assert ((value >= 0) & (value <= 1 + 1e-6)).all(), name  # sums of float32: a few ulp above 1
    used = update.metrics["ess_ratio_used"]
    assert (torch.isnan(used) | ((used >= 0) & (used <= 1 + 1e-6))).all()
    if update.entropy_coefficients is not None:
        assert torch.isfinite(update.entropy_coefficients).all()


@pytest.mark.parametrize("name", sorted(METHODS.kinds))
def test_coefficients_are_finite_or_the_batch_is_refused(name: str) -> None:
    texts = settings_of(name)

    @settings(max_examples=EXAMPLES, **FAR)  # type: ignore[arg-type]
    @given(text=st.sampled_from(texts), fields=batches())
    def attack(text: str, fields: dict[str, Any]) -> None:
        method = parse_method(text)
        method = method.with_series([0.5, 0.25], 0) if method.needs_series else method
        refusal = ""
        try:
            batch = Batch(**fields)
            update = method(batch)
        except MethodError as error:
            refusal = str(error)
        else:
            check(update, batch)
        assert "\n" not in refusal

    attack()


@pytest.mark.parametrize("shape", [(0, 4, 6), (3, 0, 6), (3, 4, 0), (0, 0, 0), (0, 3, 4, 6), (2, 3, 4, 0)])
def test_axes_of_size_zero_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BatchError, match=r"logp has shape \[.*0.*\]; an update needs a prompt, a response and a token"):
        Batch(
            logp=torch.zeros(shape),
            behavior_logp=torch.zeros(shape),
            mask=torch.ones(shape, dtype=torch.bool),
            valid=torch.ones(shape[:-1], dtype=torch.bool),
            reward=torch.zeros(shape[:-1]),
            version=torch.zeros(shape, dtype=torch.int64),
            now=0,
        )


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_no_rows_or_no_tokens_are_refused(shape: tuple[int, int]) -> None:
    rows = torch.zeros(shape)
    with pytest.raises(BatchError, match="an update needs a row and a token"):
        Batch.from_rows(
            logp=rows,
            behavior_logp=rows,
            mask=rows,
            reward=torch.zeros(shape[0]),
            group=torch.zeros(shape[0], dtype=torch.int64),
        )
