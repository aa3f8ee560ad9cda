"""What the page of the loss hooks gives to copy is taken by the adapters."""

from pathlib import Path

import yaml

from vcpo_bench.adapters import prime_rl, skyrl, slime
from vcpo_bench.adapters.row_local import bind

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "loss_paths.md").read_text()


def between(start: str, end: str) -> str:
    return TEXT.split(start, 1)[1].split(end, 1)[0]


def test_the_expressions_to_copy_are_taken() -> None:
    in_prime_rl = between('method = "', '"')
    in_slime = yaml.safe_load(between("# loss.yaml\n", "```"))[slime.SETTING]
    in_skyrl = between('register("', '"')
    bind(in_prime_rl, prime_rl.HOOK)
    bind(in_slime, slime.HOOK)
    bind(in_skyrl, skyrl.HOOKS["token_mean"])


def test_the_paths_to_copy_exist() -> None:
    assert f'"{prime_rl.loss.__module__}.loss"' in TEXT
    assert f"{slime.loss.__module__}.loss" in TEXT
