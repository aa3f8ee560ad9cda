"""Row-local methods as policy losses, through verl's own `ppo_loss`, `agg_loss` and registry."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from patience import within
from torch import Tensor

# verl itself is imported by the helpers, with our plugin
pytest.importorskip("transfer_queue", reason="runs in .ci/integrations verl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import verl_cpu  # noqa: F401
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import ActorConfig, PolicyLossConfig
from verl.workers.utils.losses import ppo_loss
from verl_runs import config

from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.recipes import own_settings, recipe
from vcpo_bench.adapters.verl.policy_loss import HOOK
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, method_names, parse_method, split_expressions

ROOT = Path(__file__).resolve().parents[2]
ROWS, LENGTH, PROMPT, WORDS = 24, 8, 3, 11
ROW_LOCAL = [name for name in method_names() if not any(reasons_against(parse_method(name), HOOK))]
OTHERS = [name for name in method_names() if name not in ROW_LOCAL]
AVERAGES = ["token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"]
BYPASSING = split_expressions(
    "reinforce,clip,clip(low=0.1,high=0.3)+seq-mean-token-mean,dual-clip(cap=1.5)+seq-mean-token-sum,tis,clip+band,"
    "tis+seq-mean-token-sum,token-tis,reinforce+tis(level=token,cap=1.1)+seq-mean-token-mean,mis(low=0.5,cap=2),icepop,"
    "rollout-is+seq-mean-token-sum,band,band(level=sequence,low=0.4,high=3)+seq-mean-token-sum,token-tis+divergence,"
    "tis(cap=2)+band(level=token,low=0.5,high=2),divergence(kind=k2,reduce=max,high=0.3),"
    "divergence(kind=k2,reduce=sum,high=0.3)+band(level=token,low=0.4,high=1.5),"
    "divergence(kind=k3,reduce=token,high=0.05),dual-clip+divergence(kind=k2,high=0.02)+seq-mean-token-sum"
)
DECOUPLED = split_expressions(
    "dual-clip(anchor=proximal)+tis(of=proximal,cap=2),dual-clip(anchor=proximal)+token-tis(of=proximal)+band(of=proximal),"
    "dual-clip(anchor=proximal)+icepop(of=proximal)+divergence(of=proximal,kind=k2,reduce=token,high=0.05),"
    "cispo(anchor=proximal,low=0,cap=5)+mis(of=proximal,low=0.5,cap=2),sapo(anchor=proximal)+token-tis(of=proximal),"
    "gspo-token(anchor=proximal)+tis(of=proximal,cap=1.5)"
)
for own in own_settings():
    if own.trainer == "verl":
        (BYPASSING if "bypass_mode=True" in own.settings else DECOUPLED).append(own.expression)


class Evidence:
    """Rows of unequal lengths, two of them without a token, under a bigram model in float64."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(0)
        normal: dict[str, Any] = {"generator": draw, "dtype": torch.float64}
        self.embedding = torch.randn(WORDS, 8, **normal)
        self.weights = (0.3 * torch.randn(8, WORDS, **normal)).requires_grad_()
        self.lengths = torch.randint(2, LENGTH + 1, (ROWS,), generator=draw)
        self.lengths[0] = LENGTH
        self.prompts = torch.randint(0, WORDS, (ROWS, PROMPT), generator=draw)
        self.responses = torch.randint(0, WORDS, (ROWS, LENGTH), generator=draw)
        self.mask = torch.arange(LENGTH) < self.lengths[:, None]
        self.mask[3], self.mask[17] = False, False
        now = self.logp(torch.arange(ROWS)).detach()
        spread = torch.where(torch.arange(ROWS) % 2 == 0, 0.01, 0.5)  # some masks drop all that is far off policy
        noise = 0.05 * torch.randn(ROWS, LENGTH, **normal)
        self.proximal = (now + noise).clamp(max=-1e-3)
        self.behavior = (now + spread[:, None] * torch.randn(ROWS, LENGTH, **normal)).clamp(max=-1e-3)
        self.advantage = torch.randn(ROWS, 1, **normal).expand(-1, LENGTH) * self.mask

    def logp(self, rows: Tensor) -> Tensor:
        """`[R, PROMPT + LENGTH - 1]`: of each token after the first."""
        tokens = torch.cat([self.prompts[rows], self.responses[rows]], 1)
        logs = torch.log_softmax(self.embedding[tokens[:, :-1]] @ self.weights, -1)
        return logs.gather(-1, tokens[:, 1:, None])[..., 0][:, PROMPT - 1 :]

    def packed(self, rows: Tensor) -> Tensor:
        """As verl's engine returns it: place t holds the log-probability of token t + 1."""
        logp, none = self.logp(rows), torch.zeros(PROMPT - 1, dtype=torch.float64)
        parts = [
            torch.cat([none, logp[place, : self.lengths[row]], none[:1]]) for place, row in enumerate(rows.tolist())
        ]
        return torch.nested.as_nested_tensor(parts, layout=torch.jagged)

    def micro_batch(self, rows: Tensor, ranks: int, **corrected: Tensor) -> Any:
        def nested(values: Tensor) -> Tensor:
            parts = [values[row, : self.lengths[row]] for row in rows.tolist()]
            return torch.nested.as_nested_tensor(parts, layout=torch.jagged)

        fields = {
            "responses": self.responses,
            "response_mask": self.mask,
            "old_log_probs": self.behavior,
            "advantages": self.advantage,
            **corrected,
        }
        prompts = torch.nested.as_nested_tensor(list(self.prompts[rows]), layout=torch.jagged)
        counts = {"dp_size": ranks, "batch_num_tokens": int(self.mask.sum()), "global_batch_size": ROWS}
        tensors = {"prompts": prompts, **{name: nested(value) for name, value in fields.items()}}
        return tu.get_tensordict(tensor_dict=tensors, non_tensor_dict=counts)


EVIDENCE = Evidence()


def through_verl(loss_mode: str, average: str, ranks: int = 2, micro: int = 3) -> Tensor:
    """The gradient after verl's averaging over ranks and micro-batches, of shuffled rows."""
    actor = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_mini_batch_size=ROWS,
        ppo_micro_batch_size_per_gpu=ROWS // ranks // micro,
        policy_loss=PolicyLossConfig(loss_mode=loss_mode),
        loss_agg_mode=average,
        loss_scale_factor=LENGTH if average.endswith("norm") else None,
    )
    return gradient(actor, ranks, micro, "vcpo_bench/share_clipped")


def gradient(actor: ActorConfig, ranks: int, micro: int, logged: str, **corrected: Tensor) -> Tensor:
    """Of verl's loss, after its averaging."""
    total = torch.zeros_like(EVIDENCE.weights)
    for own in torch.randperm(ROWS, generator=torch.Generator().manual_seed(1)).chunk(ranks):
        for rows in own.chunk(micro):
            batch = EVIDENCE.micro_batch(rows, ranks, **corrected)
            loss, metrics = ppo_loss(actor, {"log_probs": EVIDENCE.packed(rows)}, batch)
            assert logged in metrics
            total += torch.autograd.grad(loss, EVIDENCE.weights)[0] / ranks
    return total


def whole(expression: str) -> Tensor:
    """The gradient of the method on all rows at once, without verl."""
    logp = EVIDENCE.logp(torch.arange(ROWS))
    batch = Batch.from_rows(
        logp=logp.detach(),
        behavior_logp=EVIDENCE.behavior,
        mask=EVIDENCE.mask,
        reward=torch.zeros(ROWS, dtype=torch.float64),
        group=torch.arange(ROWS) // 4,
        advantage=EVIDENCE.advantage,
        proximal_logp=EVIDENCE.proximal,
    )
    coefficients = batch.to_rows(parse_method(expression)(batch).coefficients)
    return torch.autograd.grad(-(coefficients * logp).sum(), EVIDENCE.weights)[0]


def close(got: Tensor, wanted: Tensor) -> bool:
    return float((got - wanted).norm() / wanted.norm()) < 1e-8 and float(wanted.norm()) > 1e-6


def scaled(average: str, wanted: Tensor) -> Tensor:
    """verl divides by all rows, our averages by those with a token."""
    return wanted * (ROWS - 2) / ROWS if average.startswith("seq-mean") else wanted


@pytest.mark.parametrize("name", ROW_LOCAL)
def test_the_gradient_is_that_of_all_rows_together(name: str) -> None:
    average = AVERAGES[len(name) % 4]
    assert close(through_verl(f"vcpo_bench:{name}", average), scaled(average, whole(f"{name}+{average}")))


@pytest.mark.parametrize("average", AVERAGES)
def test_every_average_of_verl_is_kept(average: str) -> None:
    wanted = scaled(average, whole(f"tis(cap=2)+opsm+{average}"))
    for ranks, micro in ((1, 1), (1, 4), (2, 1), (2, 4)):
        assert close(through_verl(f"vcpo_bench:tis(cap=2)+opsm+{average}", average, ranks, micro), wanted)


@pytest.mark.parametrize("expression", BYPASSING)
def test_verls_own_settings_are_the_method(tmp_path: Path, expression: str) -> None:
    found = recipe(parse_method(expression), "verl")
    assert found.way == "own settings"
    words = [word for line in found.lines for word in shlex.split(line)]
    settings = config(tmp_path, None, "sync", *words, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4")
    actor = omega_conf_to_dataclass(settings.actor_rollout_ref.actor)
    for ranks, micro in ((1, 1), (2, 3)):
        assert close(gradient(actor, ranks, micro, "actor/ppo_kl"), whole(found.exact))


@pytest.mark.parametrize("expression", DECOUPLED)
def test_so_are_they_outside_bypass_mode(tmp_path: Path, expression: str) -> None:
    found = recipe(parse_method(expression), "verl", under_lag="of=proximal" in expression)
    assert found.way == "own settings"
    words = [word for line in found.lines for word in shlex.split(line)]
    settings = config(tmp_path, None, "sync", *words, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4")
    correction = dict(settings.algorithm.rollout_correction)
    assert not correction.pop("bypass_mode")
    correction.pop("loss_type")
    weights, mask, _ = compute_rollout_correction_and_rejection_mask(
        EVIDENCE.proximal, EVIDENCE.behavior, EVIDENCE.mask, **correction
    )
    corrected = {"old_log_probs": EVIDENCE.proximal, "response_mask": mask}
    if weights is not None:
        corrected["rollout_is_weights"] = weights.batch["rollout_is_weights"]
    actor = omega_conf_to_dataclass(settings.actor_rollout_ref.actor)
    got = gradient(actor, 1, 1, "actor/ppo_kl", **corrected)
    average = parse_method(found.exact).parts.aggregation.name
    assert close(got, whole(found.exact) if "empty=counted" in found.exact else scaled(average, whole(found.exact)))


def test_what_is_row_local_is_most() -> None:
    assert len(ROW_LOCAL) > 30
    assert {"tis", "vespo", "clip", "gspo"} <= set(ROW_LOCAL)
    assert {"vcpo", "snis", "gepo", "m2po", "topr", "stapo", "decoupled", "luspo", "gac"} <= set(OTHERS)


@pytest.mark.parametrize("name", OTHERS)
def test_the_others_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UsageError, match="in a policy loss of verl: "):
        get_policy_loss_fn(f"vcpo_bench:{name}")


def test_verls_own_losses_are_there_and_wrong_names_are_refused() -> None:
    assert get_policy_loss_fn("vanilla").__module__ == "verl.trainer.ppo.core_algos"
    with pytest.raises(ValueError, match="Unsupported loss mode"):
        get_policy_loss_fn("vanila")
    with pytest.raises(UsageError, match=r"loss_mode=.*tiss"):
        get_policy_loss_fn("vcpo_bench:tiss(cap=8)")
    with pytest.raises(UsageError, match=r"set actor\.loss_agg_mode=token-mean"):
        through_verl("vcpo_bench:tis+token-mean", "seq-mean-token-sum")


def test_evidence_that_is_not_finite_gives_a_gradient_that_verl_leaves_out() -> None:
    logp = torch.full((2, 3), -1.0, requires_grad=True)
    behavior = torch.tensor([[-1.0, torch.nan, -1.0], [-1.0, -1.0, -1.0]])
    loss, _ = get_policy_loss_fn("vcpo_bench:tis")(behavior, logp, torch.ones(2, 3), torch.ones(2, 3))
    loss.backward()
    assert logp.grad.isnan().all()
    hidden = torch.tensor([[1, 0, 1], [1, 1, 1]])
    loss, _ = get_policy_loss_fn("vcpo_bench:tis")(behavior, logp, torch.ones(2, 3), hidden)
    assert torch.autograd.grad(loss, logp)[0].isfinite().all()


def installed(folder: Path) -> Path:
    """A folder that holds what `pip install vcpo-bench` tells other packages."""
    entry = next(
        line
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith("vcpo_bench = ") and "plugin" in line
    )
    info = folder / "vcpo_bench-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vcpo-bench\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[verl.plugins]\n" + entry.replace('"', "") + "\n")
    return folder


def in_new_process(folder: Path, lines: Sequence[str]) -> Any:
    path = os.pathsep.join([str(installed(folder)), *sys.path])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VERL_")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(lines)],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=within(120),
    )


def test_verl_finds_the_plugin_through_its_entry_point(tmp_path: Path) -> None:
    lines = [
        "import verl",
        "from verl.trainer.ppo.core_algos import get_policy_loss_fn",
        "print(type(get_policy_loss_fn('vcpo_bench:vespo')).__name__)",
        "from verl.trainer.ppo.v1 import get_trainer_cls",
        "print([base.__name__ for base in get_trainer_cls('vcpo_bench').__mro__[:4]])",
        "from verl.utils.config import validate_config",
        "print(validate_config.__wrapped__.__module__)",
    ]
    done = in_new_process(tmp_path, lines)
    assert done.stdout.splitlines() == [
        "RowLocalLoss",
        "['vcpo_bench', 'MethodPPOTrainer', 'MonitoredTrainer', 'PPOTrainerSync']",
        "verl.utils.config",
    ], done.stderr[-2000:]


def test_a_plugin_that_cannot_be_loaded_is_not_hidden(tmp_path: Path) -> None:
    done = in_new_process(tmp_path, ["import sys", "sys.modules['wrapt'] = None", "import verl", "print('goes on')"])
    assert done.stdout == "goes on\n"
    assert "vcpo_bench: not available in verl, ModuleNotFoundError" in done.stderr
    assert "pip install '.[verl]' in a checkout" in done.stderr
