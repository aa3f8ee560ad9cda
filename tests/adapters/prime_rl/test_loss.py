"""The custom loss of prime-rl against what its documentation says of the calls around it."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from hook_rows import hook_rows, poisoned, relative_error, supported, wanted_gradient
from loss_hook_contracts import LossOutputs, in_prime_rl

from vcpo_bench.adapters.prime_rl import HOOK, loss
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("prime_rl.trainer.rl.loss")
    module.LossOutputs = LossOutputs  # type: ignore[attr-defined]
    for name in ("prime_rl", "prime_rl.trainer", "prime_rl.trainer.rl"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_every_supported_method_has_its_gradient() -> None:
    rows = hook_rows()
    for text in supported(HOOK):
        found = in_prime_rl(loss, poisoned(rows), text)
        assert relative_error(found, wanted_gradient(parse_method(text), rows)) < 1e-12, text


def test_weights_of_the_component_multiply_the_loss_of_each_token() -> None:
    rows = hook_rows()
    logp = rows.logp[0].clone().requires_grad_()
    one = {"inference_logprobs": rows.behavior_logp[0], "advantages": rows.advantage[0], "loss_mask": rows.mask[0]}
    weights = torch.linspace(0.5, 2.0, len(logp), dtype=torch.float64)
    gradients = []
    for given in (None, weights):
        inputs = SimpleNamespace(trainer_logprobs=logp, loss_weights=given, **one)
        found = loss(inputs, method="clip+token-mean")
        gradients.append(torch.autograd.grad(found.loss, logp)[0])
        assert set(found.metrics) == {f"vcpo_bench/{name}" for name in ("share_clipped", "share_masked", "not_finite")}
    torch.testing.assert_close(gradients[1], gradients[0] * weights)


def test_refused_at_the_first_sequence() -> None:
    with pytest.raises(UsageError, match=r"tis in prime-rl: .* write \+token-mean"):
        in_prime_rl(loss, hook_rows(), "tis")
