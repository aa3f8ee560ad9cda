"""Files of warm starts: what is written loads again, what does not fit is refused in one line."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from vcpo_bench.bench.policies.catalog import POLICIES
from vcpo_bench.bench.policies.embedded.tiny import Tiny
from vcpo_bench.bench.policies.warm_start import TINY, WarmStart, load_warm_start, read_warm_start, save_warm_start
from vcpo_bench.bench.tasks import token_task
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.errors import UsageError

FOLDER = Path(__file__).parents[3] / "bench" / "policies"
SHIPPED = sorted((path.parts[-3], path.stem) for path in FOLDER.glob("*/warm/*.safetensors"))


class Other(Tiny):
    """The same network as another policy."""

    name = "other"


@pytest.mark.parametrize(("kind", "name"), SHIPPED)
def test_the_shipped_start_has_something_to_learn(kind: str, name: str) -> None:
    task = token_task(name)
    start = read_warm_start(task, kind=POLICIES.parse(kind))
    measured = evaluate(start.policy, task)
    assert measured.sampled_reward == pytest.approx(start.reward, abs=0.02)
    assert measured.greedy_reward == pytest.approx(start.greedy, abs=0.02)
    assert 0.25 < measured.sampled_reward < 0.4
    assert measured.entropy > 0.2
    if name != "prefix-chain":  # nothing to read: its one right answer per bit is the likeliest early on
        assert measured.greedy_reward <= 0.6
        assert measured.sampled_reward_hard < 0.6 * measured.sampled_reward_easy
    assert (FOLDER / kind / "warm" / f"{name}.safetensors").stat().st_size < 1_000_000


def test_a_variant_without_a_start_names_the_command() -> None:
    with pytest.raises(
        UsageError, match=r"no warm start for task 'chain\(n=8\)'.*vcpo-bench lab warmup --task 'chain\(n=8\)'"
    ):
        load_warm_start(token_task("chain(8)"))


def untrained(task: str) -> WarmStart:
    return WarmStart(task, TINY.untrained(token_task(task), 0), seed=0, steps=0, reward=0.0, greedy=0.0)


def test_a_start_of_another_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "start.safetensors"
    save_warm_start(replace(untrained("chain"), task="chain"), path)
    with pytest.raises(UsageError, match="is for task 'chain', not 'walk'"):
        load_warm_start(token_task("walk"), path)


def test_a_start_of_another_policy_is_refused(tmp_path: Path) -> None:
    path, task = tmp_path / "start.safetensors", token_task("chain")
    save_warm_start(replace(untrained("chain"), kind=Other()), path)
    assert read_warm_start(task, path, Other()).kind == Other()
    with pytest.raises(UsageError, match="is a policy 'other', not 'tiny'; name it with --policy"):
        load_warm_start(task, path)
    with pytest.raises(UsageError, match="--task 'chain\\(n=5\\)' --policy 'other'"):
        load_warm_start(token_task("chain(n=5)"), kind=Other())


@pytest.mark.parametrize("damage", ["cut", "text", "tensor missing", "no origin"])
def test_a_damaged_start_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "start.safetensors"
    save_warm_start(untrained("chain"), path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    elif damage == "text":
        path.write_text("not weights")
    elif damage == "tensor missing":
        weights = load_file(path)
        del weights["head.bias"]
        save_file(weights, path, {"task": "chain", "seed": "0", "steps": "0", "reward": "0"})
    else:
        save_file(load_file(path), path, {"task": "chain"})
    with pytest.raises(UsageError, match="is damaged; make one with"):
        load_warm_start(token_task("chain"), path)


def test_an_unwritable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the warm start"):
        save_warm_start(untrained("chain"), tmp_path / "file" / "start.safetensors")
