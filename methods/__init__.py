"""The gradient coefficients of every stabilizer: pure tensor maths, torch only."""

from vcpo_bench.methods.batch import Batch
from vcpo_bench.methods.describe import Curve, Description, coefficient_curve, describe, draw_curve
from vcpo_bench.methods.errors import (
    BatchError,
    ExpressionError,
    MethodError,
    MissingEvidence,
    NonFiniteEvidence,
    ParameterError,
    PluginError,
)
from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.expression import parse_method, parse_methods, split_expressions
from vcpo_bench.methods.method import Method, RatioMethod, Terms, WeightMethod
from vcpo_bench.methods.registry import broken_plugins, load_plugin, method_names, part_names
from vcpo_bench.methods.template import new_method
from vcpo_bench.methods.update import Update

__all__ = [
    "Batch",
    "BatchError",
    "Curve",
    "Description",
    "Evidence",
    "ExpressionError",
    "Method",
    "MethodError",
    "MissingEvidence",
    "NonFiniteEvidence",
    "ParameterError",
    "PluginError",
    "RatioMethod",
    "Terms",
    "Update",
    "WeightMethod",
    "broken_plugins",
    "coefficient_curve",
    "describe",
    "draw_curve",
    "load_plugin",
    "method_names",
    "new_method",
    "parse_method",
    "parse_methods",
    "part_names",
    "split_expressions",
]
