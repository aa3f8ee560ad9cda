"""Beside third-party packages: math-verify's verdicts, transformers' sizes."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from math_pairs import DIFFERENT, SAME, pairs

from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer

RESTATED = {
    *((r"2^{10}", "1024"), (r"\sqrt{4}", "2"), ("2*3", "6"), ("3+4", "7"), ("4!", "24"), (r"\binom52", "10")),
    *((r"(x+1)^2", "x^2+2x+1"), (r"\frac{1}{2}^2", r"\frac{1}{4}"), ("x2", "2x"), ("50\\%", "0.5")),
}
"""Right by value, which this project calls wrong on purpose: a response must not earn a reward by restating."""
LAX = {
    *(("1011_2", "1011"), ("1011_2", "1011_3"), ("0.333333333", r"\frac13"), ("(1,2)", "1,2"), ("1,1", "1")),
    *(("x", "X"), ("2^10", "2^{10}"), ("5", r"5\text{ or 6}")),
}
"""math-verify drops bases, case and words, rounds, reads a point as a list, and `2^10` as no TeX does."""


@pytest.fixture(scope="module")
def verdict() -> Any:
    """math-verify's opinion of two boxed answers."""
    package = pytest.importorskip("math_verify", reason="runs in .ci/integrations tasks")

    def read(answer: str) -> Any:
        return package.parse(f"$\\boxed{{{answer}}}$", parsing_timeout=None)

    return lambda one, other: package.verify(read(one), read(other), timeout_seconds=None)


def test_math_verify_agrees_but_for_what_is_right_by_value_only(verdict: Any) -> None:
    checked = [(one, other, verdict(one, other)) for one, other in pairs(SAME) + pairs(DIFFERENT)]
    stricter = {(one, other) for one, other, right in checked if right and not same_answer(one, other)}
    laxer = [(one, other) for one, other, right in checked if not right and same_answer(one, other)]
    print("only math-verify calls right:", sorted(stricter), "\nonly same_answer calls right:", sorted(laxer))
    assert stricter <= RESTATED | LAX
    assert len(laxer) <= 0.25 * len(checked)  # words, units and spellings that math-verify does not read


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3"])
def test_sizes_and_saved_activations_match_transformers(kind: str, dtype: str) -> None:
    transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations tasks")
    import torch

    from vcpo_bench.bench.machine.gpu_estimate import Workload, memory
    from vcpo_bench.bench.machine.model_shapes import read_shape

    config = getattr(transformers, f"{kind}Config")(
        vocab_size=128,
        hidden_size=256,
        intermediate_size=640,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
        attn_implementation="sdpa",
    )
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    shape = read_shape(config.to_dict(), kind)
    assert shape.parameters == sum(parameter.numel() for parameter in model.parameters())
    saved: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        saved[tensor.untyped_storage().data_ptr()] = tensor  # held, so that no place is used twice
        return tensor

    with (
        torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16", cache_enabled=False),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        real = (torch.arange(60) >= torch.tensor([[3], [0], [2], [0]])).long()  # padded on the left, as batches are
        tokens = torch.randint(0, 128, (4, 60))
        hidden = model.model(tokens, attention_mask=real, use_cache=False).last_hidden_state
    assert hidden.requires_grad
    weights = {tuple(parameter.shape) for parameter in model.parameters()}  # also their casts
    places = {
        place: tensor
        for place, tensor in saved.items()
        if not {tuple(tensor.shape), tuple(tensor.shape[::-1])} & weights
    }
    measured = sum(tensor.untyped_storage().nbytes() for tensor in places.values())
    estimated = memory(shape, Workload(4, 1, 56, prompt_tokens=4, dtype=dtype)).activations
    print(f"{kind} {dtype}: autograd saves {measured}, estimated {estimated:.0f}, ratio {measured / estimated:.2f}")
    assert 0.85 < measured / estimated < 1.15
