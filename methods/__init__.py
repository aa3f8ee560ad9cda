"""The gradient coefficients of every stabilizer: pure tensor maths, torch only."""

from vcpo_bench.methods.assembly.describe import Curve, Description, coefficient_curve, describe, draw_curve
from vcpo_bench.methods.assembly.method import Method, RatioMethod, Terms, WeightMethod
from vcpo_bench.methods.assembly.reading import parse_method, parse_methods, split_expressions
from vcpo_bench.methods.assembly.registry import broken_plugins, load_plugin, method_names, part_names
from vcpo_bench.methods.assembly.template import new_method
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.errors import (
    BatchError,
    ExpressionError,
    MethodError,
    MissingEvidence,
    NonFiniteEvidence,
    ParameterError,
    PluginError,
)
from vcpo_bench.methods.core.update import Update
from vcpo_bench.methods.core.view import Evidence

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
