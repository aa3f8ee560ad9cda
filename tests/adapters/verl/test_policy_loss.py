"""Policy losses without verl: cut into micro-batches, the gradient is that of all rows; and which are refused."""

import pytest
import torch
from torch import Tensor

from vcpo_bench.adapters.hook_reasons import reasons_against
from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.verl.policy_loss import HOOK, Registry, RowLocalLoss
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Batch, method_names, parse_method
from vcpo_bench.methods.core.reach import Scope

ROWS, LENGTH = 12, 5
ROW_LOCAL = [name for name in method_names() if not any(reasons_against(parse_method(name), HOOK))]


def token_sum(loss_mat: Tensor, loss_mask: Tensor, loss_agg_mode: str) -> Tensor:
    assert loss_agg_mode == "token-sum"
    return (loss_mat * loss_mask).sum()


def evidence() -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(0)
    logp = -0.1 - torch.rand(ROWS, LENGTH, generator=draw, dtype=torch.float64)
    far = torch.where(torch.arange(ROWS) % 2 == 0, 0.01, 0.5)[:, None]
    noise = far * torch.randn(ROWS, LENGTH, generator=draw, dtype=torch.float64)
    mask = torch.arange(LENGTH) < torch.randint(0, LENGTH + 1, (ROWS, 1), generator=draw)
    behavior = torch.where(mask, (logp + noise).clamp(max=-1e-3), torch.nan)  # verl fills up with anything
    advantage = torch.randn(ROWS, 1, generator=draw, dtype=torch.float64).expand(-1, LENGTH)
    return {"logp": logp, "behavior_logp": behavior, "mask": mask, "advantage": advantage}


@pytest.mark.parametrize("name", ROW_LOCAL)
def test_micro_batches_add_up(name: str) -> None:
    rows = evidence()
    clean = {**rows, "behavior_logp": rows["behavior_logp"].nan_to_num(-1.0)}
    batch = Batch.from_rows(**clean, reward=torch.zeros(ROWS), group=torch.zeros(ROWS, dtype=torch.int64))
    wanted = -batch.to_rows(parse_method(f"{name}+token-sum")(batch).coefficients)
    loss = RowLocalLoss(parse_method(name), token_sum)
    logp = rows["logp"].clone().requires_grad_()
    for part in torch.randperm(ROWS, generator=torch.Generator().manual_seed(1)).split(5):
        given = (rows["behavior_logp"][part], logp[part], rows["advantage"][part], rows["mask"][part])
        value, metrics = loss(*given, loss_agg_mode="token-sum")
        value.backward()
        assert set(metrics) == {f"vcpo_bench/{each}" for each in ("share_clipped", "share_masked", "not_finite")}
    torch.testing.assert_close(logp.grad, wanted, rtol=1e-12, atol=1e-14)
    assert logp.grad.abs().max() > 1e-3


def test_only_row_local_methods_pass() -> None:
    local = {name for name in method_names() if locality_of(parse_method(name)).loss is Scope.ROW}
    assert set(ROW_LOCAL) < local
    assert local - set(ROW_LOCAL) == {
        *("a3po", "dc-asgd", "decoupled", "drift-cap", "estr", "gac", "gap-aware", "inverse-lag", "inverse-sqrt-lag"),
        *("kl-adaptive", "length-surge", "luspo", "sis", "stapo", "topr", "update-norm", "vcpo"),
    }


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("m2po", "needs all rows of the optimizer step together, and its loss hook sees single rows; use trainer.v1"),
        ("gepo", "needs all rows of a prompt together"),
        ("vcpo", "needs score_norm_sq, which the loss hook does not hand"),
        ("topr", "reads the reward"),
        ("tis+max-lag", "reads the version"),
        ("clip+ess", "scales the learning rate"),
        ("luspo", "luspo-mean cannot be made exactly"),
        ("tis+rloo", r"configure it there and leave out \+rloo"),
        ("clip+entropy", "term in the entropy"),
        ("gac", "changes the whole gradient"),
        ("dc-asgd", "how far the weights have moved"),
        ("clip+lr-shuffled", "borrows the step scales"),
    ],
)
def test_refused(expression: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"in a policy loss of verl: .*{reason}"):
        RowLocalLoss(parse_method(expression), token_sum)


def test_weights_of_verl_and_another_average_are_refused() -> None:
    ones = torch.ones(1, 2)
    loss = RowLocalLoss(parse_method("tis+token-mean"), token_sum)
    with pytest.raises(UsageError, match=r"set actor\.loss_agg_mode=token-mean"):
        loss(-ones, -ones, ones, ones, loss_agg_mode="token-sum")
    with pytest.raises(UsageError, match="rollout_is weights the loss"):
        loss(-ones, -ones, ones, ones, loss_agg_mode="token-mean", rollout_is_weights=ones)


def test_the_registry_makes_a_loss_when_it_is_asked_for() -> None:
    def vanilla() -> None: ...

    registry = Registry({"vanilla": vanilla}, token_sum, lambda: True)
    assert registry["vanilla"] is vanilla
    assert "gspo" not in registry
    assert "vcpo_bench:vespo" in registry
    assert registry["vcpo_bench:vespo"] is registry["vcpo_bench:vespo"]
    with pytest.raises(KeyError):
        registry["gspo"]
    with pytest.raises(UsageError, match=r'policy_loss\.loss_mode="vcpo_bench:vesp"'):
        registry["vcpo_bench:vesp"]
