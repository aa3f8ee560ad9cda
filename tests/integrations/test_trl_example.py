"""The example inside the real TRL trains."""

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="runs in .ci/integrations trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from trl_runs import saved_model, tokenizer

EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_one_line.py"


@pytest.mark.parametrize("method", ["vcpo", "clip(high=0.28)"])
def test_the_example_trains_with_a_method_of_ours(tmp_path: Path, method: str) -> None:
    saved_model(tmp_path)
    tokenizer().save_pretrained(str(tmp_path / "model"))
    run = runpy.run_path(str(EXAMPLE))["train"](str(tmp_path / "model"), method, str(tmp_path / "out"), steps=3)
    assert run.state.global_step == 3
    assert sum("reward" in row for row in run.state.log_history) == 3
    assert type(run).__name__ != "GRPOTrainer", "the trainer is wrapped"
