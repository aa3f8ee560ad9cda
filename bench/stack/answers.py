"""The methods' answers for E cells: one call for all cells of one method that ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from vcpo_bench.bench.stack.evidence import StackedEvidence, together
from vcpo_bench.methods import Method, Update

Answer = Update | Exception
"""What a method returned for a cell, or what it raised."""
States = Sequence[Mapping[str, Tensor]]


def answer(methods: Sequence[Method], evidence: StackedEvidence, states: States) -> list[Answer]:
    """Ask the method of every cell.

    Cells whose methods are equal are asked about together. Where that raises, each is asked about alone, so that only
    the cell with the bad evidence is refused.

    Args:
        methods: The method of each cell.
        evidence: Of all cells.
        states: What each method returned last time, in main memory.

    Returns:
        The answers; their coefficients are where the evidence is, everything else is in main memory.
    """
    found: dict[int, Answer] = {}
    for cells in _groups(methods, states):
        found |= _ask_together(methods[cells[0]], cells, evidence, states)
    return [found[cell] for cell in range(len(methods))]


def _groups(methods: Sequence[Method], states: States) -> list[list[int]]:
    """Cells that can be asked about together.

    A step rule that follows a series counts for itself, and a method with a part that does not ship may mix the runs
    of a leading axis: one cell a call.
    """
    groups: dict[object, list[int]] = {}
    for cell, (method, state) in enumerate(zip(methods, states, strict=True)):
        alone = method.needs_series or not method.all_ship
        key = (cell,) if alone else (method, tuple(state))
        groups.setdefault(key, []).append(cell)
    return list(groups.values())


def _ask_together(method: Method, cells: Sequence[int], evidence: StackedEvidence, states: States) -> dict[int, Answer]:
    if len(cells) == 1:
        return {cells[0]: _ask(method, cells[0], evidence, states[cells[0]])}
    device = evidence.logp.device
    state = {name: together([states[cell][name] for cell in cells], device) for name in states[cells[0]]}
    try:
        update = method(evidence.of(cells, method.needs, state))
    except Exception:  # one of the cells is to blame: it alone is told so
        return {cell: _ask(method, cell, evidence, states[cell]) for cell in cells}
    return dict(zip(cells, _split(update, len(cells)), strict=True))


def _ask(method: Method, cell: int, evidence: StackedEvidence, state: Mapping[str, Tensor]) -> Answer:
    try:
        there = {name: value.to(evidence.logp.device) for name, value in state.items()}
        return _kept(method(evidence.of([cell], method.needs, there)))
    except Exception as problem:  # evidence that is not finite skips an update, everything else ends the cell
        return problem


def _split(update: Update, cells: int) -> list[Update]:
    """The update of each cell."""
    update = _kept(update)
    bonus = [None] * cells if update.entropy_coefficients is None else update.entropy_coefficients.unbind()
    scales = update.step_scale.expand(cells).unbind()
    states, metrics = _unbound(update.state, cells), _unbound(update.metrics, cells)
    return [
        Update(coefficients=c, step_scale=scale, entropy_coefficients=e, state=state, metrics=metric)
        for c, scale, e, state, metric in zip(update.coefficients.unbind(), scales, bonus, states, metrics, strict=True)
    ]


def _kept(update: Update) -> Update:
    """With everything but coefficients in main memory, where single numbers are read without waiting for a GPU."""
    named = [{name: value.cpu() for name, value in part.items()} for part in (update.state, update.metrics)]
    return replace(update, step_scale=update.step_scale.cpu(), state=named[0], metrics=named[1])


def _unbound(named: Mapping[str, Tensor], cells: int) -> list[dict[str, Tensor]]:
    columns = {name: value.expand(cells, *value.shape[1:]).unbind() for name, value in named.items()}
    return [{name: column[cell] for name, column in columns.items()} for cell in range(cells)]
