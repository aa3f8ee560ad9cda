"""The mismatch of a Hugging Face model, sampled by torch: tied head, caches with padding, lag."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="runs in .ci/integrations hf")

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.policies.hf.create import new_model
from vcpo_bench.bench.replay.mismatch import COMPONENTS, attribute, open_setup
from vcpo_bench.bench.replay.mismatch.gaps import gap_of
from vcpo_bench.records.settings import CellSettings


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    network, tokenizer = new_model("llama(100k)")
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_every_component_of_a_language_model(model: Path) -> None:
    settings = CellSettings(prompts=4, responses=2, max_response=16)
    spec = GridSpec(
        ("reinforce",), (0,), (0,), ("arithmetic",), settings=settings, controls=False, model=str(model)
    )  # fmt: skip
    setup = open_setup(plan_grid(spec)[0].config, spec.start_path, 1)
    lag = COMPONENTS.parse("lag(1)")
    assert "its updates changed nothing" in lag.why_not(setup), "a model from scratch earns nothing"
    setup.older = {name: weight + 0.01 * torch.randn_like(weight) for name, weight in setup.exact.weights.items()}
    assert any("embed" in name for name in setup.head), "the head is tied to the embeddings"
    chosen = [COMPONENTS.parse(text) for text in ("weights", "head", "kv-cache(fp8)", "batching", "top-p", "lag(1)")]
    found = attribute(setup, chosen, [8])
    sd = {row.path: row.gap.sd for row in found.rows if row.gap}
    assert sd["exact path"] < 1e-5
    assert sd["batching"] < 1e-5
    for name in ("weights", "head", "kv-cache(to=fp8)", "top-p", "lag(k=1)", "all of them"):
        assert sd[name] > 10 * sd["exact path"], name
    assert gap_of(setup.draw(setup.exact)).tokens > 0
