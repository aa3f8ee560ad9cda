"""Settings of what a method replaces, in the real TRL: refused, each with what to write instead."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="runs in .ci/integrations trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from trl_runs import saved_model, trainer

from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.adapters.trl.refusals import REPLACED, _of_replaced_settings, _warn_of_sampling, defaults
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"epsilon": 0.1}, r"epsilon=0.1 belongs to the loss it replaces; .*clip\(low="),
        ({"epsilon_high": 0.28}, r"epsilon_high=0.28 .*clip\(high="),
        ({"delta": 4.0}, r"two-sided\(delta="),
        ({"loss_type": "cispo"}, r"loss_type='cispo' .*cispo\+token-mean"),
        ({"scale_rewards": "batch"}, r"\+batch-std"),
        ({"scale_rewards": False}, r"\+group-mean"),
        ({"importance_sampling_level": "sequence", "loss_type": "grpo"}, "gspo"),
        ({"vespo_k_pos": 1.0}, "vespo_k_pos=1.0"),
        ({"vllm_importance_sampling_mode": "token_mask"}, "icepop 'token_mask'"),
        ({"vllm_importance_sampling_clip_max": 2.0}, "cap="),
        ({"use_bias_correction_kl": False}, r"\+kl\(anchor=reference"),
    ],
)
def test_other_than_defaults_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        trainer(tmp_path, "clip", model=saved_model(tmp_path), **changes)


def test_every_setting_that_the_method_replaces_is_one_that_trl_has() -> None:
    """One that TRL has renamed would pass unseen."""
    assert set(REPLACED) <= set(defaults())


@pytest.mark.parametrize(
    ("vllm", "changes", "reason"),
    [
        (True, {"vllm_importance_sampling_correction": False}, "does not check that vLLM reports"),
        (False, {"vllm_importance_sampling_correction": False}, None),
        (True, {"vllm_importance_sampling_clip_min": 0.5}, "low="),
    ],
)
def test_without_vllms_ratios_a_method_is_refused(vllm: bool, changes: dict[str, Any], reason: str | None) -> None:
    args = SimpleNamespace(**(defaults() | changes))
    found = list(_of_replaced_settings(SimpleNamespace(use_vllm=vllm, args=args), locality_of(parse_method("clip")), 0))
    assert (len(found) == 1 and reason in found[0]) if reason else not found


@pytest.mark.parametrize(("vllm", "why"), [(True, "distribution that it cut"), (False, "are not drawn from")])
def test_truncated_sampling_is_warned_about(vllm: bool, why: str) -> None:
    sampling = {"top_p": 0.9, "top_k": None, "min_p": None, "repetition_penalty": 1.0}
    with pytest.warns(UserWarning, match=f"^top_p: .*{why}"):
        _warn_of_sampling(SimpleNamespace(use_vllm=vllm, **sampling))
