"""Whatever a training loop passes as a field of a batch, it is told so by a BatchError, and by nothing else."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.errors import BatchError

CALLS = 3000
ROWS, TOKENS = 4, 3
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: [0.0] * ROWS,
    lambda: [[0.0] * TOKENS] * ROWS,
    lambda: np.zeros((ROWS, TOKENS)),
    lambda: np.zeros(ROWS),
    lambda: "x",
    lambda: 1,
    lambda: 10**30,
    lambda: 0.5,
    lambda: True,
    dict,
    lambda: {"a": 1},
    lambda: {1: torch.zeros(1)},
    lambda: {"a": torch.zeros(1)},
    lambda: object(),
    lambda: torch.zeros(()),
    lambda: torch.zeros(ROWS),
    lambda: torch.zeros(ROWS, TOKENS),
    lambda: torch.zeros(ROWS, TOKENS, 2),
    lambda: torch.zeros(0, TOKENS),
    lambda: torch.zeros(ROWS, 0),
    lambda: torch.zeros(2, TOKENS),
    lambda: torch.zeros(ROWS, TOKENS, dtype=torch.complex64),
    lambda: torch.zeros(ROWS, dtype=torch.complex64),
    lambda: torch.zeros(ROWS, TOKENS, dtype=torch.int64),
    lambda: torch.zeros(ROWS, dtype=torch.int64),
    lambda: torch.zeros(ROWS, dtype=torch.bool),
    lambda: torch.zeros(ROWS, TOKENS, dtype=torch.bool),
    lambda: torch.zeros(ROWS, TOKENS, dtype=torch.float16),
    lambda: torch.zeros(ROWS, TOKENS).to_sparse(),
    lambda: torch.zeros(ROWS, dtype=torch.int64).to_sparse(),
    lambda: torch.zeros(ROWS, TOKENS, device="meta"),
    lambda: torch.zeros(ROWS, TOKENS, requires_grad=True),
    lambda: torch.quantize_per_tensor(torch.zeros(ROWS, TOKENS), 0.1, 0, torch.quint8),
    lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
)
NAMES = ("logp", "behavior_logp", "mask", "reward", "group", "version", "now", "state", "update_norm")
MORE = ("advantage", "entropy", "score_norm_sq", "void_turn", "valid", "rows", "nothing")


def good() -> dict[str, Any]:
    tokens = torch.zeros(ROWS, TOKENS)
    return {
        "logp": tokens,
        "behavior_logp": tokens,
        "mask": tokens.bool(),
        "reward": torch.zeros(ROWS),
        "group": torch.tensor([0, 0, 1, 1]),
    }


@pytest.mark.filterwarnings("ignore:.*(nested|quantiz|Quantiz)")
def test_a_wrongly_typed_field_is_a_batch_error() -> None:
    chance = random.Random(0)
    refused: list[str] = []
    for _ in range(CALLS):
        fields = good()
        for name in chance.sample((*NAMES, *MORE), chance.choice([1, 1, 1, 2, 3])):
            fields[name] = chance.choice(VALUES)()
        try:
            Batch.from_rows(**fields)
        except BatchError as error:
            refused.append(str(error))
    assert len(refused) > CALLS // 2
    assert not [text for text in refused if "\n" in text]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("logp", [[0.0]], "logp is a list; give a tensor, such as torch.as_tensor makes"),
        ("mask", None, "mask is missing; give a tensor, such as torch.as_tensor makes"),
        ("reward", torch.zeros(ROWS).to_sparse(), "reward is a sparse, quantized or nested tensor; give a dense one"),
        ("entropy", torch.zeros(ROWS, TOKENS, device="meta"), r"entropy is a tensor without values"),
        ("reward", torch.zeros(()), "reward has no rows; expected 4"),
        ("group", torch.zeros(ROWS), "group is a tensor of torch.float32; expected a whole number"),
        ("now", 0.5, "now is a float; expected a whole number"),
        ("now", torch.zeros(ROWS, dtype=torch.int64), r"now has shape \[4\]"),
        ("update_norm", "x", "update_norm is a str; expected a number"),
        ("state", [1], "state is a list; give the state of the last Update"),
        ("state", {"a": 1}, r"state\['a'\] is a int; give a tensor"),
        ("valid", torch.ones(ROWS), "unknown field 'valid'"),
    ],
)
def test_the_error_names_the_field_and_what_to_do(name: str, value: Any, said: str) -> None:
    with pytest.raises(BatchError, match=f"^{said}"):
        Batch.from_rows(**(good() | {name: value}))


def test_whole_numbers_of_other_libraries_will_do() -> None:
    version = torch.ones(ROWS, TOKENS, dtype=torch.int64)
    batch = Batch.from_rows(**good(), version=version, now=np.int64(3), update_norm=np.float32(1.0))
    assert batch.lag().max() == 0  # no token carries loss
