"""Every public parser: any input gives a value or a UsageError, never another exception."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vcpo_bench.analysis.monitoring.signal import SIGNALS
from vcpo_bench.bench.cells import flag_values
from vcpo_bench.bench.cells.preset_file import read_configuration
from vcpo_bench.bench.machine.model_shapes import read_shape
from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks import TASKS
from vcpo_bench.bench.tasks.text.items.rows import read_rows
from vcpo_bench.bench.tasks.text.scoring.expressions import evaluate
from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer
from vcpo_bench.commands.support.foreign_logs import parse_map
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method

LONG = os.environ.get("HARDENING") == "long"
thorough = settings(
    max_examples=5000 if LONG else 60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

CATALOGS = {
    "method": parse_method,
    "regime": REGIMES.parse,
    "task": TASKS.parse,
    "optimizer": OPTIMIZERS.parse,
    "sampler": SAMPLERS.parse,
}
NAMES = {
    "method": ["clip", "vcpo", "vespo", "reinforce", "lr-matched", "opob", "ess", "to", "high", "base", "paper"],
    "regime": ["fifo", "async", "minibatch", "reuse", "random", "inflight", "poisson", "sampler", "learner", "mean"],
    "task": ["chain", "walk", "walk-eos", "prefix-chain", "countdown", "arithmetic", "n", "numbers", "style"],
    "optimizer": ["adamw", "sgd", "muon", "beta2", "momentum", "nesterov", "scale"],
    "sampler": ["torch", "vllm", "generate", "graph", "vllm-server", "slots", "dtype", "weights", "disk"],
}
VALUES = ["0", "1", "-1", "8", "1/8", "1e400", "nan", "inf", "9" * 30, "²", "٣", "on", "off", "a b", "\x00", "'", "{}"]
MARKS = list("()[],=+:/ ")


def read_or_refuse(function: Callable[..., object], *arguments: Any) -> object:
    """The value, or None after a UsageError."""
    with contextlib.suppress(UsageError):
        return function(*arguments)
    return None


def expressions(kind: str) -> st.SearchStrategy[str]:
    pieces = st.sampled_from([*NAMES[kind], *VALUES, *MARKS])
    return st.lists(pieces, max_size=14).map("".join) | st.text(max_size=30)


@pytest.mark.parametrize("kind", CATALOGS)
def test_expressions(kind: str) -> None:
    @thorough
    @given(expressions(kind))
    def check(text: str) -> None:
        read_or_refuse(CATALOGS[kind], text)

    check()


@thorough
@given(st.sampled_from(SIGNALS.names()), st.lists(st.sampled_from([*VALUES, *MARKS]), max_size=6).map("".join))
def test_signals(name: str, rest: str) -> None:
    read_or_refuse(SIGNALS.parse, name + rest)


FLAGS = [flag_values.lags, flag_values.rates, flag_values.updates, flag_values.every, flag_values.device, parse_map]
FLAG_TEXT = st.text(max_size=20) | st.lists(st.sampled_from([*VALUES, "every", "cuda", "a", *MARKS]), max_size=6).map(
    "".join
)


@pytest.mark.parametrize("read", [*FLAGS, flag_values.expressions], ids=lambda read: read.__name__)
def test_flags(read: Callable[[str], object]) -> None:
    @thorough
    @given(FLAG_TEXT)
    def check(text: str) -> None:
        read_or_refuse(read, text)

    check()


TAGS = ("int", "float", "timestamp", "binary", "set", "omap", "pairs", "bool", "null", "merge", "x")
YAML_PIECES = [
    *(f"!!{tag} " for tag in TAGS),
    *("methods", "steps", "out", ": ", "\n", "\n  ", "- ", "[", "]", "{", "}", "&a ", "*a", "|", ">", "<<: ", "? "),
    *("2026-01-01", "1e3", "0x", "~", "%YAML 9", "---", "...", "'", '"', "\t", "1:2:3", *VALUES),
]
YAML = st.lists(st.sampled_from(YAML_PIECES), max_size=20).map("".join)


@thorough
@given(YAML | st.text(max_size=60))
def test_configurations(tmp_path: Path, text: str) -> None:
    file = tmp_path / "grid.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    read_or_refuse(read_configuration, str(file), tmp_path, {"methods": str, "steps": int, "out": str, "quiet": bool})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CONFIG_KEYS = st.sampled_from(
    ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "model_type"]
)


@thorough
@given(st.dictionaries(CONFIG_KEYS, JSON, max_size=6))
def test_sizes_of_models(config: dict[str, object]) -> None:
    read_or_refuse(read_shape, config, "model")


WHOLE_LINES = [
    *('{"step": 1, "reward": 0.5}', '{"step": 2, "reward": null}', "reward,step", "0.5,1", "step:1 - a:2", "[1, 2]"),
    *(f'{{"step": {"9" * 5000}}}', '{"a":' * 2000, "{'loss': 0.5, 'reward': nan}", '{"log_history": [1]}', "", "\x00"),
]
LINES = st.lists(st.sampled_from(WHOLE_LINES) | st.text(max_size=30), max_size=8)


@thorough
@given(LINES, st.binary(max_size=20), st.sampled_from([".jsonl", ".parquet"]))
def test_rows_of_data_sets(tmp_path: Path, lines: list[str], noise: bytes, ending: str) -> None:
    file = tmp_path / f"data{ending}"
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + noise)
    read_or_refuse(read_rows, file, ("step",))


@thorough
@given(
    st.text(max_size=60), st.lists(st.sampled_from([*"()+-*/ 0123456789", "\\frac", "{", "}", "^", "²"])).map("".join)
)
def test_scorers_of_answers_never_raise(text: str, formula: str) -> None:
    evaluate(text)
    evaluate(formula)
    assert same_answer(text, formula) == same_answer(formula, text)
