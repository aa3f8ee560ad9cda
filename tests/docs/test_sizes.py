"""The sizes of tasks, policies and the collection of methods that README and findings name are those of the code."""

import re
from pathlib import Path

import pandas as pd
import pytest
from page_prose import STUDIES

from vcpo_bench.analysis.collapse.rule import CollapseRule
from vcpo_bench.bench.policies.embedded.tiny import Tiny
from vcpo_bench.bench.tasks.catalog import TASKS
from vcpo_bench.methods import method_names

ROOT = Path(__file__).parents[2]
README, FINDINGS = (" ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/findings.md"))
TRAINED = ("walk", "walk-eos", "chain")


@pytest.mark.parametrize("text", [README, FINDINGS], ids=["README", "findings"])
def test_tasks_and_policies(text: str) -> None:
    walk, chain = TASKS.parse("walk"), TASKS.parse("chain")
    assert f"writes a walk of {walk.max_response} steps on a graph from a start to a goal" in text
    assert f"it writes the running sums of {chain.max_response} digits" in text
    longest = max(TASKS.parse(name).max_response for name in TRAINED)
    assert f"at most {longest} tokens per response show mechanisms" in text
    sizes = {f"{parameters(name) / 1e6:.1f} M" for name in TRAINED}
    assert sizes == {"0.1 M"}
    assert text.count("0.1 M parameters") == 2


def parameters(task: str) -> int:
    """Parameters of the policy that trains on a task unless another is named."""
    policy = Tiny().untrained(TASKS.parse(task), 0)
    return sum(weight.numel() for weight in policy.parameters())


@pytest.mark.parametrize("text", [README, FINDINGS], ids=["README", "findings"])
def test_the_rule_of_failure(text: str) -> None:
    rule = CollapseRule()
    assert (rule.depth, rule.patience) == (0.5, 3)
    assert "held-out reward falls below half of its best and stays there for three evaluations" in text


def test_how_many_methods() -> None:
    assert "puts more than seventy of them behind one interface" in README
    assert 70 < len(set(method_names())) < 80
    trained = pd.read_csv(STUDIES / "every-method" / "methods.csv").query("lag > 0")
    assert 70 < trained["method"].nunique() < 80


def test_the_caption_of_the_figure() -> None:
    runs = pd.read_csv(STUDIES / "phase" / "runs.csv")
    (seeds,) = re.findall(
        r"that of VCPO is not shown to fall with the requested lag\. (\d) seeds, 95% intervals", README
    )
    assert int(seeds) == runs["seed"].nunique()
    assert "![The largest learning rate that survives 300 updates, against policy lag, on two tasks]" in README
    assert runs["task"].nunique() == 2
    verdicts = pd.read_csv(STUDIES / "phase" / "exponents.csv").query("lag == 'asked'").groupby("method")["verdict"]
    assert {name for name, own in verdicts if "holds" in set(own)} == {"reinforce"}
    slower = pd.read_csv(STUDIES / "phase" / "exponents.csv").query("lag == 'asked'").set_index("method")
    assert (slower.loc[["tis", "clip"], "low"] > 0).all()
    assert (slower.loc["vcpo", "low"] < 0).all()
    assert f"With {seeds} seeds even equality could not have been shown." in README
