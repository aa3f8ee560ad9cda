"""The gradient coefficients of every stabilizer: pure tensor math, torch only."""

from vcpo_bench.methods.assembly.catalog import (
    METHODS,
    method_names,
    parse_method,
    parse_methods,
    part_names,
)
from vcpo_bench.methods.assembly.describe import Curve, Description, coefficient_curve, describe, draw_curve
from vcpo_bench.methods.assembly.geometry import Geometry, geometry_of, geometry_text
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod, WeightMethod
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.errors import (
    BatchError,
    EvidenceOrderError,
    MethodError,
    MissingEvidence,
    NonFiniteEvidence,
)
from vcpo_bench.methods.core.interfaces import Admission, Aggregation, Baseline, Mask, Part, Regularizer, Step
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.update import Update
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.errors import ExpressionError, ParameterError, PluginError
from vcpo_bench.naming.grammar import split_list as split_expressions
from vcpo_bench.naming.plugins import load_plugin

__all__ = [
    "METHODS", "Admission", "Aggregation", "Baseline", "Batch", "BatchError", "Curve", "Description",
    "EvidenceOrderError", "EvidenceView", "ExpressionError", "Geometry", "Mask", "Method", "MethodError",
    "MissingEvidence", "NonFiniteEvidence", "ParameterError", "Part", "PluginError", "RatioMethod", "Regularizer",
    "Step", "Terms", "Update", "WeightMethod", "coefficient_curve", "describe", "draw_curve",
    "geometry_of", "geometry_text", "load_plugin", "method_names", "parse_method", "parse_methods", "part_names",
    "split_expressions",
]  # fmt: skip
