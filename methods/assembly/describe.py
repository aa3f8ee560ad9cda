"""Facts about a method for people, and its coefficient drawn against the ratio."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.lazy_torch import torch
from vcpo_bench.methods.assembly.catalog import METHODS, method_names, parse_method
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod, WeightMethod
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.bernoulli import two_tokens
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.naming.component import parameters
from vcpo_bench.naming.errors import ParameterError

PROBABILITY = 0.02
"""Probability of the token under the behavior policy in a curve: methods that look at probabilities need one."""


@dataclass(frozen=True)
class ParameterFacts:
    """One parameter: its default as written in an expression, and what is legal."""

    name: str
    default: str
    legal: str


@dataclass(frozen=True)
class Description:
    """The facts of one method or part.

    Attributes:
        name: As written in expressions.
        expression: Canonical expression of the name alone; empty for parts that are no stabilizer of their own.
        acts_on: `ratio`, `weight`, `mask`, `baseline`, `step`, ...
        summary: One line.
        reference: Paper.
        year: Year of the paper, 0 when there is none.
        formula: The equation, plain text.
        parameters: Its parameters.
        anchors: What each ratio is relative to, with the default parameters.
        needs: Optional batch fields it reads, with the default parameters.
        differences: Where frameworks or papers disagree.
        paper_parts: What `NAME:paper` adds.
        version: Of the numbers it produces.
        origin: Module, file or entry point.
    """

    name: str
    expression: str
    acts_on: str
    summary: str
    reference: str
    year: int
    formula: str
    parameters: tuple[ParameterFacts, ...]
    anchors: dict[str, str]
    needs: tuple[str, ...]
    differences: tuple[str, ...]
    paper_parts: str
    version: int
    origin: str


@dataclass(frozen=True)
class Curve:
    """Coefficient of a one-token row against the logarithm of its ratio, for A = +1 and A = -1."""

    log_ratio: list[float]
    positive: list[float]
    negative: list[float]


def describe(name: str) -> Description:
    """The facts of a method or part.

    Raises:
        ParameterError: For an unknown name, with the closest ones.
    """
    kind = METHODS.kinds.get(name)
    if kind is None:
        raise ParameterError(METHODS.unknown(name, list(METHODS.kinds), "method or part"))
    whole = parse_method(name) if name in method_names() else None
    default = whole if whole is not None else kind()
    facts = [
        ParameterFacts(each, parameter.write(value), parameter.legal)
        for each, (value, parameter) in sorted(parameters(kind).items())
    ]
    return Description(
        name=name,
        expression=whole.canonical if whole is not None else "",
        acts_on=_acts_on(kind),
        summary=kind.summary,
        reference=kind.reference,
        year=kind.year,
        formula=kind.formula,
        parameters=tuple(facts),
        anchors=default.anchors,
        needs=tuple(sorted(default.needs)),
        differences=kind.differences,
        paper_parts=kind.paper_parts if issubclass(kind, Method) else "",
        version=default.version,
        origin=METHODS.origin(name),
    )


def _acts_on(kind: type[MethodComponent]) -> str:
    if issubclass(kind, WeightMethod):
        return "weight"
    if issubclass(kind, RatioMethod):
        return "ratio"
    return "advantage" if issubclass(kind, Method) else kind.slot


def coefficient_curve(expression: str, points: int = 61, span: float = 3.0) -> Curve:
    """Coefficient against log-ratio from `-span` to `span`, each point a batch of one row of one token.

    Args:
        expression: Any method expression; step rules do not show, batch statistics are those of a single row.
        points: Number of ratios.
        span: Largest absolute log-ratio.
    """
    method = parse_method(expression)
    logs = torch.linspace(-span, span, points, dtype=torch.float64)
    return Curve(logs.tolist(), *(_coefficients(method, logs, sign) for sign in (1.0, -1.0)))


def _coefficients(method: Method, logs: torch.Tensor, sign: float) -> list[float]:
    shape = (len(logs), 1, 1, 1)
    behavior = torch.full(shape, PROBABILITY, dtype=torch.float64).log()
    current = behavior + logs.reshape(shape)
    batch = Batch(
        logp=current,
        behavior_logp=behavior,
        proximal_logp=behavior,
        reference_logp=behavior,
        entropy=torch.ones(shape, dtype=torch.float64),
        sum_pi_sq=torch.full(shape, 0.1, dtype=torch.float64),
        vocabulary_logp=two_tokens(current),
        behavior_vocabulary_logp=two_tokens(behavior),
        mask=torch.ones(shape, dtype=torch.bool),
        valid=torch.ones(shape[:-1], dtype=torch.bool),
        reward=torch.full(shape[:-1], max(sign, 0.0), dtype=torch.float64),
        advantage=torch.full(shape, sign, dtype=torch.float64),
        score_norm_sq=torch.ones(shape[:-1], dtype=torch.float64),
        parameter_distance=torch.ones(shape[:-1], dtype=torch.float64),
        void_turn=torch.zeros(shape[:-1], dtype=torch.bool),
        update_norm=1.0,
        version=torch.zeros(shape, dtype=torch.int64),
        now=1,
    )
    values: list[float] = method(batch).coefficients.flatten().tolist()
    return values


def draw_curve(curve: Curve, width: int = 61, height: int = 11) -> list[str]:
    """The curve as lines of text: `+` for A > 0, `-` for A < 0 (shown as its size), `*` where they meet.

    Args:
        curve: From `coefficient_curve`.
        width: Columns of the plot area.
        height: Rows of the plot area.
    """
    top = max(1e-12, *map(abs, curve.positive), *map(abs, curve.negative))
    top = min(top, 8.0)
    rows = [[" "] * width for _ in range(height)]
    last = len(curve.log_ratio) - 1
    for column in range(width):
        place = round(column * last / (width - 1))
        for value, mark in ((curve.positive[place], "+"), (-curve.negative[place], "-")):
            level = round(min(max(value / top, 0.0), 1.0) * (height - 1))
            cell = rows[height - 1 - level]
            cell[column] = mark if cell[column] == " " else "*"
    labels = [f"{top * (height - 1 - row) / (height - 1):7.2f}" for row in range(height)]
    lines = [f"{label} |{''.join(cells).rstrip()}" for label, cells in zip(labels, rows, strict=True)]
    low, high = curve.log_ratio[0], curve.log_ratio[-1]
    axis = f"{'':8}+{'-' * width}"
    ratio = f"{'':8} r = e^{low:g}{'1':^{max(1, width - 20)}}e^{high:g}"
    return [*lines, axis, ratio.rstrip()]
