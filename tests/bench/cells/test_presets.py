"""Every preset can be planned; the papers' presets hold the published numbers and show their cost without a model."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import vcpo_bench
from vcpo_bench.bench.cells.preset_file import preset_names
from vcpo_bench.cli import app

PRESETS = Path(vcpo_bench.__file__).parent / "configs"
PAPERS = ("vcpo-gsm8k", "vcpo-math", "vespo")


def dry_run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["run", "--dry-run", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_preset_plans_without_model_data_or_gpu(name: str) -> None:
    shown = dry_run("--config", name)
    published = yaml.safe_load((PRESETS / f"{name}.yaml").read_text())
    for lag in str(published["staleness"]).split(","):
        assert f" lag {lag} seed 2 {published['task']} lr 1e-6" in shown
    assert "reinforce lag 0 seed 0" in shown
    assert "estimate, checked in parts on one GPU" in shown
    assert f"{published['prompts'] * published['responses']} responses" in shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vcpo-gsm8k", {"prompts": 8, "responses": 8, "max-response": 2048, "steps": 500, "staleness": 12}),
        ("vcpo-math", {"prompts": 32, "responses": 16, "max-response": 2048, "steps": 500}),
        ("vespo", {"prompts": 256, "responses": 8, "max-response": 15360, "steps": 1500, "regime": "minibatch"}),
    ],
)
def test_published_numbers(name: str, expected: dict[str, object]) -> None:
    published = yaml.safe_load((PRESETS / f"{name}.yaml").read_text())
    assert {key: published[key] for key in expected} == expected
    assert float(published["lr"]) == 1e-6


def test_a_flag_typed_wins_and_changes_the_estimate() -> None:
    shown = dry_run("--config", "vcpo-math", "--lora", "64", "--methods", "vcpo", "--staleness", "10", "--seeds", "1")
    assert "3 cells" in shown
    assert "H100-80  fits" in shown


def test_the_estimate_needs_a_size() -> None:
    done = CliRunner().invoke(app, ["run", "--dry-run", "--device", "cuda", "--task", "gsm8k", "--model", "who/knows"])
    assert done.exit_code == 2
    assert "size unknown" in done.output


def test_every_preset_begins_with_what_it_is_for() -> None:
    for name in preset_names(PRESETS):
        assert (PRESETS / f"{name}.yaml").read_text().startswith("# "), name
