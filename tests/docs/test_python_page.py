"""The page on Python: its code runs, on results and in a training loop."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import vcpo_bench as vb

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
(LOOP,) = [code for code in re.findall(r"```python\n(.*?)```", PAGE, flags=re.S) if "ScoreNorms" in code]
TABLES = re.findall(r"^\| `(\w+)` \| .* \| (?:always|`record)", PAGE, flags=re.M)
NAMED = re.findall(r"^\| `vb\.(\w+)", PAGE, flags=re.M)


def test_the_table_lists_what_there_is() -> None:
    assert sorted(NAMED) == sorted(set(vb.__all__) - {"__version__", "Tables"})


def test_the_tables_listed_are_those_there_are() -> None:
    assert len(TABLES) == 7
    assert all(hasattr(vb.Tables, name) for name in TABLES)


def test_the_tables_said_to_have_a_key_have_one(make_results: Callable[..., Path], tmp_path: Path) -> None:
    tables = vb.load(make_results(tmp_path / "r", lags=(16,), seeds=(0,), steps=40, record="diagnostics"))
    without = [name for name in TABLES if "key" not in getattr(tables, name)]
    assert without == re.findall(r"all but `(\w+)` have `key`", PAGE)


def test_the_five_tasks_and_the_code_on_tables_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the page, in an empty folder, as a reader would copy them."""
    monkeypatch.chdir(tmp_path)
    tasks, tables = (section_of(title) for title in ("Five tasks", "Tables"))
    assert len(tasks) == 5
    names: dict[str, object] = {"vb": vb}
    for code in [*tasks, *tables]:
        exec(code, names)
    assert (tmp_path / "reward.pdf").read_bytes().startswith(b"%PDF")
    assert names["figure"].get_label().startswith("How does each method learn")
    assert "['" in capsys.readouterr().out or names["diagnosis"].causes == ()
    assert names["statement"]


def section_of(title: str) -> list[str]:
    """The blocks of Python code of a section of the page."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", PAGE, flags=re.S | re.M)
    return re.findall(r"```python\n(.*?)```", text, flags=re.S)


@pytest.mark.parametrize("expression", ["vcpo", "vespo", "a3po", "clip+inverse-lag", "clip+kl-adaptive"])
def test_the_training_loop_runs_for_methods_with_and_without_score_norms_lags_and_state(expression: str) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11))
    tokens = torch.randint(0, 11, (6, 5))
    names = {
        "model": model,
        "tokens": tokens,
        "log_probabilities": lambda net, ids: net(ids).log_softmax(-1).gather(2, ids[..., None])[..., 0],
        "behavior_logp": torch.full((6, 5), -2.4),
        "version": torch.full((6, 5), 2),
        "now": 18,
        "state": {},
        "mask": torch.ones(6, 5, dtype=torch.bool),
        "reward": torch.tensor([1.0, 0, 0, 1, 1, 0]),
        "group": torch.tensor([0, 0, 0, 1, 1, 1]),
    }
    exec(LOOP.replace('"vcpo"', repr(expression)), names)
    assert all(bool((one.grad != 0).any()) for one in model.parameters() if one.grad is not None)
    assert model[1].weight.grad is not None
    assert bool(names["state"]) == ("adaptive" in expression)
    if "inverse-lag" in expression:
        assert float(names["update"].step_scale) == pytest.approx(1 / 17)


def test_missing_score_norms_are_said_where_to_come_from() -> None:
    logp = torch.full((2, 3), -1.0)
    batch = vb.methods.Batch.from_rows(
        logp=logp, behavior_logp=logp, mask=logp < 0, reward=torch.ones(2), group=torch.zeros(2, dtype=torch.int64)
    )
    with pytest.raises(vb.methods.MissingEvidence, match="ScoreNorms"):
        vb.methods.parse_method("vcpo")(batch)
