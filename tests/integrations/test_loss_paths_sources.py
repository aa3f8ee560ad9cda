"""Custom losses called by prime-rl's and slime's own code, from checkouts; neither is on a package index.

    PRIME_RL_SOURCE=prime-rl SLIME_SOURCE=slime pytest tests/integrations/test_loss_paths_sources.py

What needs a GPU or Megatron around the called code is replaced: configuration classes, `mpu`, package front doors.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hook_rows import SUFFIXES, B, hook_rows, poisoned, relative_error, supported, wanted_gradient
from loss_hook_contracts import CUTS, slime_arguments, slime_batch

from vcpo_bench.adapters import prime_rl, slime
from vcpo_bench.methods import parse_method

RANKS = 2


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    made.__path__ = []
    sys.modules[name] = made
    return made


def load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def clean_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("prime_rl", "slime", "megatron")]:
        del sys.modules[name]


def source(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} names no checkout, CI has none; docs/loss_paths.md helps, test_loss.py does without")
    return Path(os.environ[variable])


@pytest.mark.usefixtures("clean_modules")
def test_prime_rl() -> None:
    root = source("PRIME_RL_SOURCE")

    class Custom(SimpleNamespace):
        """A configuration."""

    for name in ("prime_rl", "prime_rl.configs", "prime_rl.trainer", "prime_rl.trainer.rl", "prime_rl.utils"):
        module(name)
    kinds = ("DefaultLossConfig", "IPOLossConfig", "LossConfig")
    module("prime_rl.configs.trainer", CustomLossConfig=Custom, **{kind: type(kind, (), {}) for kind in kinds})
    imported = {"vcpo_bench.adapters.prime_rl.loss": prime_rl.loss}
    module("prime_rl.utils.utils", import_object=imported.__getitem__)
    theirs = load("prime_rl.trainer.rl.loss", root / "src" / "prime_rl" / "trainer" / "rl" / "loss.py")
    rows = hook_rows()
    hidden = poisoned(rows)
    for text in supported(prime_rl.HOOK):
        config = Custom(import_path="vcpo_bench.adapters.prime_rl.loss", kwargs={"method": text})
        logp = rows.logp.clone().requires_grad_()
        scale = int(rows.mask.sum())
        for which in CUTS:
            value, metrics = theirs.compute_loss(
                [logp[row] for row in which],
                [hidden.behavior_logp[row] for row in which],
                None,
                [hidden.advantage[row] for row in which],
                [hidden.mask[row] for row in which],
                None,
                None,
                None,
                theirs.setup_rl_loss_fn(config),
                scale,
                1,
                1,
            )
            value.backward()
            assert metrics["vcpo_bench/not_finite"].sum() == 0
        assert logp.grad is not None
        assert relative_error(logp.grad, wanted_gradient(parse_method(text), rows)) < 1e-12, text


@pytest.mark.usefixtures("clean_modules")
def test_slime() -> None:
    root = source("SLIME_SOURCE") / "slime"
    alone = {"world_size": 1, "rank": 0}
    mpu = SimpleNamespace(
        get_data_parallel_world_size=lambda with_context_parallel=False: RANKS,
        get_tensor_model_parallel_group=lambda: None,
        **{f"get_context_parallel_{name}": (lambda value=value: value) for name, value in alone.items()},
    )
    for name in ("megatron", "slime", "slime.utils", "slime.backends", "slime.backends.megatron_utils"):
        module(name)
    module("megatron.core", mpu=mpu)
    module("slime.utils.distributed_utils", distributed_masked_whiten=None)
    module("slime.utils.misc", load_function={"vcpo_bench.adapters.slime.loss": slime.loss}.__getitem__)
    module("slime.utils.types", RolloutBatch=dict)
    load("slime.utils.ppo_utils", root / "utils" / "ppo_utils.py")
    load("slime.backends.megatron_utils.cp_utils", root / "backends" / "megatron_utils" / "cp_utils.py")
    theirs = load("slime.backends.megatron_utils.loss", root / "backends" / "megatron_utils" / "loss.py")
    for text in [*supported(slime.HOOK, SUFFIXES[1:2]), f"vespo{SUFFIXES[3]}"]:
        check_slime(theirs, text)


def check_slime(theirs: Any, text: str) -> None:
    """Three micro-batches on two ranks: the gradient by the logits, with Megatron's divisions done by hand."""
    rows = hook_rows()
    arguments = slime_arguments(
        text,
        loss_type="custom_loss",
        custom_loss_function_path="vcpo_bench.adapters.slime.loss",
        recompute_loss_function=False,
        allgather_cp=False,
        log_probs_chunk_size=-1,
        rollout_top_p=1.0,
    )
    generator = torch.Generator().manual_seed(1)
    for which in CUTS:
        batch = slime_batch(poisoned(rows), which)
        count = sum(batch["total_lengths"])
        logits = torch.randn(1, count, 5, generator=generator).requires_grad_()
        scored = torch.log_softmax(logits[0], 1)[:, 0]  # all tokens are 0
        wanted = _wanted_by_logits(rows, which, batch, scored, text)
        loss, _, report = theirs.loss_function(
            arguments, batch, num_microbatches=4, step_global_batch_size=B, logits=logits
        )
        loss = loss / 4 / RANKS  # Megatron: by micro-batches; DDP: by ranks
        (found,) = torch.autograd.grad(loss, logits)
        (right,) = torch.autograd.grad(wanted, logits)
        assert relative_error(found, right) < 1e-5, text
        assert "vcpo_bench/not_finite" in report["keys"]


def _wanted_by_logits(rows: Any, which: list[int], batch: dict[str, Any], scored: Any, text: str) -> Any:
    """`-sum c log pi` of some rows, with c of the whole step in which the others have the log-probabilities given."""
    logp, places, start = rows.logp.clone(), [], 0
    for row, total, length in zip(which, batch["total_lengths"], batch["response_lengths"], strict=True):
        own = scored[start + total - length - 1 : start + total - 1]
        logp[row, :length] = own.detach().double()
        places.append((row, length, own))
        start += total
    gradient = wanted_gradient(parse_method(text), type(rows)(**{**vars(rows), "logp": logp}))
    masked = gradient * rows.mask
    return sum((masked[row, :length].float() * own).sum() for row, length, own in places)
