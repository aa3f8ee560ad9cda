"""What a part returns, checked: a wrong shape would broadcast and give a wrong number without a word.

Only what does not ship is checked. Tests run what ships on batches whose axes all differ, and learners pay nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.composite import Composite
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.errors import MethodError
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView


@dataclass(frozen=True)
class Promise:
    """What something returned has to be.

    Attributes:
        text: Its shape, in words.
        missing: How many of the last axes of `[..., P, G, T]` it lacks, each possibility; -1: it has one more.
        kept: Whether it says what is kept: bool.
    """

    text: str
    missing: tuple[int, ...]
    kept: bool = False


SCALE = Promise("one number a run", (3,))
ROWS = Promise("[..., P, G]", (1,))
ROWS_KEPT = Promise("bool [..., P, G]", (1,), kept=True)
TOKENS = Promise("[..., P, G, 1|T]", (0,))
TOKENS_KEPT = Promise("bool [..., P, G, 1|T]", (0,), kept=True)
ROWS_OR_TOKENS = Promise("[..., P, G] or [..., P, G, 1|T]", (1, 0))
VOCABULARY = Promise("[..., P, G, T, V]", (-1,))


def checked(part: MethodComponent, what: str, value: Tensor, ev: EvidenceView, kind: Promise) -> Tensor:
    """What a part returned.

    Args:
        part: Who returned it.
        what: What it is: the name of the function.
        value: What was returned.
        ev: What it was made from.
        kind: What it has to be.

    Raises:
        MethodError: It has another shape or type, or is not a number somewhere.
    """
    if not part.ships():
        tensor = _shaped(part, what, value, ev, kind)
        if kind is SCALE and not bool(((tensor >= 0) & (tensor < torch.inf)).all()):
            raise _wrong(part, what, f"{tensor.tolist()}", "a finite number, 0 or more")
        _refuse_nan(part, what, tensor, ev.rows.mask)
    return value


def checked_if_any(
    part: MethodComponent, what: str, value: Tensor | None, ev: EvidenceView, kind: Promise
) -> Tensor | None:
    """The same of what may be None.

    Raises:
        MethodError: As `checked`.
    """
    return None if value is None else checked(part, what, value, ev, kind)


def checked_terms(method: MethodComponent, terms: Terms, ev: EvidenceView) -> Terms:
    """What a surrogate returned. Where its gradient does not get through, the weight may be anything.

    Raises:
        MethodError: As `checked`.
    """
    if method.ships():
        return terms
    if not isinstance(terms, Terms):
        raise _wrong(method, "terms", _type(terms), "Terms(weight=...)")
    acts = ev.rows.mask
    if terms.kept is not None:
        kept = _shaped(method, "kept", terms.kept, ev, TOKENS)
        if kept.dtype != torch.bool and not bool(((kept == 0) | (kept == 1)).all()):
            raise _wrong(method, "kept", "neither 0 nor 1 somewhere", TOKENS_KEPT.text)
        acts = acts & (as_number(kept, ev.rows.dtype) > 0)
    if terms.capped is not None:
        _shaped(method, "capped", terms.capped, ev, TOKENS_KEPT)
    for what in ("weight", "addend", "score"):
        if (value := getattr(terms, what)) is not None:
            _refuse_nan(method, what, _shaped(method, what, value, ev, TOKENS), acts)
    return terms


def checked_state(method: Composite, state: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """What a method wants to see again: checkpoints hold tensors only.

    Raises:
        MethodError: Something else is among it.
    """
    for name, value in state.items() if not method.all_ship else ():
        if not isinstance(value, torch.Tensor):
            raise MethodError(f"{method.canonical}: state[{name!r}] is {_type(value)}; keep tensors only")
    return state


def _shaped(part: MethodComponent, what: str, value: object, ev: EvidenceView, kind: Promise) -> Tensor:
    if not isinstance(value, torch.Tensor):
        raise _wrong(part, what, _type(value), f"a tensor, {kind.text}")
    tokens = ev.rows.mask.shape
    wanted = [(*tokens, *value.shape[-1:])[: len(tokens) - missing] for missing in kind.missing]
    if not any(_broadcasts(value.shape, shape) for shape in wanted):
        raise _wrong(part, what, f"{list(value.shape)}", kind.text)
    if kind.kept and value.dtype != torch.bool:
        raise _wrong(part, what, f"{value.dtype}", kind.text)
    return value


def _broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether it has all axes, each of the size wanted or 1."""
    return len(shape) == len(wanted) and all(size in (1, want) for size, want in zip(shape, wanted, strict=True))


def _refuse_nan(part: MethodComponent, what: str, value: Tensor, tokens: Tensor) -> None:
    """Refuse a value that is not a number: by token where a token counts, by row anywhere."""
    bad = torch.isnan(value)
    if bad.dim() == tokens.dim():
        bad = bad & tokens
    if bool(bad.any()):
        raise MethodError(f"{part.name}: {what} is not a number (NaN), of evidence that is finite")


def _wrong(part: MethodComponent, what: str, found: str, wanted: str) -> MethodError:
    return MethodError(f"{part.name}: {what} is {found}; return {wanted}")


def _type(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
