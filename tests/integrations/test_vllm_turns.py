"""A real vLLM engine draws the turns of a small Llama that makes calls: exact tokens, and a cell."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from patience import within
from vllm_models import TOLERANCE, Watched, command_environment

from vcpo_bench.bench.samplers.vllm_engine.serve import VllmServer
from vcpo_bench.bench.samplers.vllm_server import URL_VARIABLE
from vcpo_bench.bench.tasks.environment import Reply
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.bench.training.imitation_hf import warm_up_model
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.records.step_facts import EPISODE_FACTS

LENGTH = 30


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that calls, and reads what it hears: it answers right more than one time in ten."""
    folder = tmp_path_factory.mktemp("models") / "warm"
    assert warm_up_model("calc-text", folder, new="llama(100k,head=32)", target=0.1).reward > 0.1
    return folder


def watched(folder: Path, regime: str, staleness: int, prompts: int, sampler: str = "vllm") -> Watched:
    """Cells with 16 responses in flight, so that they share an engine."""
    sizes = {"length": LENGTH, "prompts": prompts, "responses": 4}
    return Watched(folder, regime, staleness, task="calc-text", sampler=sampler, **sizes)


def totals(batch: Trajectories) -> dict[str, int]:
    assert batch.episodes is not None
    return dict(zip(EPISODE_FACTS, batch.episodes.sum((0, 1)).tolist(), strict=True))


def replayed(cell: Watched, batch: Trajectories) -> None:
    """Every token that the policy did not draw is what the environment says, where it says it; counts are those."""
    environment = cell.trainer.task.environment
    assert environment is not None
    prompts, responses, mask, *_ = batch.flat()
    assert batch.episodes is not None
    for row, (tokens, own) in enumerate(zip(responses.tolist(), mask.tolist(), strict=True)):
        episode = Episode(environment, prompts[row // batch.responses.shape[1]].tolist(), LENGTH)
        for token, mine in zip(tokens, own, strict=True):
            if episode.observes:
                assert not mine
                assert token == episode.observe()
            elif mine:
                episode.say(token)
        assert episode.ended
        assert episode.facts() == batch.episodes.flatten(0, 1)[row].tolist()
        assert not batch.behavior_logp.flatten(0, 1)[row][~mask[row]].any()


def test_log_probabilities_of_every_turn_are_the_learners_after_every_push(warm: Path) -> None:
    cell = watched(warm, "fifo", 1, prompts=4)
    for update in range(5):
        batch = cell.feed()
        expected = max(0, update - 1)
        assert batch.version[batch.mask].unique().tolist() == [expected]  # as the engine itself counts them
        assert cell.error(batch, expected) < TOLERANCE
        replayed(cell, batch)
        if update == 0:
            assert totals(batch)["calls"] > 4
            assert totals(batch)["observed"] > 12
    cell.trainer.close()


def test_weights_that_change_between_and_within_turns(warm: Path) -> None:
    cell = watched(warm, "inflight(cache=recompute)", 1, prompts=2)
    for update in range(4):
        batch = cell.feed()
        versions = batch.version[batch.mask].unique().tolist()
        assert versions == list(range(max(0, update - 1), update + 1))
        assert all(cell.error(batch, version) < TOLERANCE for version in versions)
        replayed(cell, batch)
    cell.trainer.close()


def test_the_same_cell_again(warm: Path) -> None:
    batches = []
    for _ in range(2):
        cell = watched(warm, "fifo", 0, prompts=4)
        batches.append(cell.feed())
        cell.trainer.close()
    assert torch.equal(batches[0].responses, batches[1].responses)
    assert torch.equal(batches[0].mask, batches[1].mask)


def test_a_request_that_waits_for_room_is_drawn_all_the_same(warm: Path) -> None:
    """More tokens are heard at once than the engine reads in one step; on a CPU no prompt may be cut into parts."""
    cell = watched(warm, "fifo", 0, prompts=4)
    environment = cell.trainer.task.environment
    said = 0

    def reply(*_: object) -> Reply:
        nonlocal said
        said += 1
        return Reply("call", (7,) * 8)

    environment.reply, environment.over = reply, lambda said: len(said) == 3  # type: ignore[method-assign, union-attr]
    batch = cell.feed()
    assert said == 3 * 16
    assert cell.error(batch, 0) < TOLERANCE
    cell.trainer.close()


@pytest.fixture(scope="module")
def served(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server of the model, whose head is untied: on a CPU vLLM takes no new weights for a tied one."""
    folder = tmp_path_factory.mktemp("served") / "untied"
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network = AutoModelForCausalLM.from_pretrained(warm, dtype=torch.float32)
    network.config.tie_word_embeddings = False
    network.lm_head.weight = torch.nn.Parameter(network.lm_head.weight.detach().clone())
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(warm).save_pretrained(folder)
    options = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "256", "--max-num-seqs", "64")
    options += ("--kv-cache-memory-bytes", str(2**26))
    environment = command_environment() | {"VLLM_CPU_CI_ENV": "1"}
    with (
        VllmServer(folder, folder.parent / "log", options, environment) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        server.wait()
        patch.setenv(URL_VARIABLE, server.url)
        yield folder


@pytest.mark.parametrize("regime", ["fifo", "inflight(cache=recompute)"])
def test_a_server_draws_turns_too(served: Path, regime: str) -> None:
    cell = watched(served, regime, 1, prompts=4, sampler="vllm-server")
    for update in range(3):
        batch = cell.feed()
        oldest = max(0, update - 1)
        versions = batch.version[batch.mask].unique().tolist()
        assert versions == ([oldest] if regime == "fifo" else list(range(oldest, update + 1)))
        assert all(cell.error(batch, version) < TOLERANCE for version in versions)
        replayed(cell, batch)
        if update == 0:
            assert totals(batch)["calls"] > 4
            assert totals(batch)["observed"] > 12
    cell.trainer.close()


def test_a_cell_is_trained_in_turns(warm: Path, tmp_path: Path) -> None:
    arguments = ["run", "--model", str(warm), "--task", "calc-text", "--sampler", "vllm", "--methods", "vcpo"]
    arguments += ["--staleness", "1", "--seeds", "1", "--steps", "6", "--prompts", "8", "--responses", "4", "--lr"]
    arguments += ["1e-3", "--jobs", "1", "--no-controls", "--record", "diagnostics", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "vcpo_bench", *arguments]
    done = subprocess.run(
        command, env=command_environment(), capture_output=True, text=True, timeout=within(600), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "run").glob("cells/*/steps.parquet")
    steps = pq.read_table(file).to_pydict()
    assert len(steps["batch_reward"]) == 6
    assert max(steps["batch_reward"]) > 0
    assert min(steps["episode_calls"]) > 0.1
    assert min(steps["episode_observed"]) > 0.3
    assert steps["lag_max"] == [0, 1, 1, 1, 1, 1]
