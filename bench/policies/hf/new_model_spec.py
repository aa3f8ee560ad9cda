"""What `--new` names: `llama(SIZE)`, read by the grammar of everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.arguments import read_arguments
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.naming.grammar import read_item
from vcpo_bench.naming.parameters import Parameter, custom, integer

_SCALES = {"k": 1e3, "M": 1e6}
_SMALLEST, _LARGEST = 1e4, 1e9
_LEGAL = "a number of parameters from 10k to 1000M, such as 1M"


def _read_size(text: str) -> float:
    if text[-1:] not in _SCALES or not text[:1].isdigit():
        raise ValueError(f"must be {_LEGAL}")
    size = float(text[:-1]) * _SCALES[text[-1]]
    _check_size(size)
    return size


def _check_size(size: Any) -> None:
    if not _SMALLEST <= size <= _LARGEST:
        raise ValueError(f"must be {_LEGAL}")


def _write_size(size: float) -> str:
    return f"{size / 1e6:g}M" if size >= 1e6 else f"{size / 1e3:g}k"


@dataclass(frozen=True, kw_only=True)
class Llama(Component):
    """An untrained Llama.

    Attributes:
        size: Parameters, about.
        head: Size of an attention head; 0: by the size of the model.
    """

    name = "llama"
    summary = "a randomly initialized Llama with a character tokenizer"
    size: float = custom(1e6, Parameter(_LEGAL, _read_size, _write_size, _check_size, "custom"))
    head: int = integer(0, minimum=0, maximum=999)


def read_new_model(text: str) -> Llama:
    """The model that an expression describes: `llama(1M)`, `llama(1M,head=32)`.

    Raises:
        UsageError: It names something else, has no size, or does not follow the grammar.
    """
    hint = f"--new {text!r}: write llama(SIZE) with 10k to 1000M parameters, such as llama(1M)"
    try:
        item = read_item(text)
        known = {name: parameter for name, (_, parameter) in parameters(Llama).items()}
        values: dict[str, Any] = read_arguments(text, item, known, bare="size")
    except UsageError as error:
        raise UsageError(f"{hint}; {error}") from None
    if item.name.text != Llama.name or item.suffix is not None or "size" not in values:
        raise UsageError(hint)
    return Llama(**values)
