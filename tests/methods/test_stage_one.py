"""The first methods do what their one-line formulas say."""

import pytest
import torch

from vcpo_bench.methods import Batch, ExpressionError, NonFiniteEvidence, method_names, parse_method


def batch(**changes: object) -> Batch:
    generator = torch.Generator().manual_seed(0)
    P, G, T = 3, 4, 5
    logp = -torch.rand(P, G, T, generator=generator, dtype=torch.float64)
    fields = {
        "logp": logp,
        "behavior_logp": logp + 0.3 * torch.randn(P, G, T, generator=generator, dtype=torch.float64),
        "mask": torch.rand(P, G, T, generator=generator) < 0.8,
        "valid": torch.ones(P, G, dtype=torch.bool),
        "reward": torch.randint(0, 2, (P, G), generator=generator).double(),
        "version": torch.zeros(P, G, T, dtype=torch.int64),
        "now": 3,
        "score_norm_sq": torch.rand(P, G, generator=generator, dtype=torch.float64) + 0.1,
    }
    return Batch(**(fields | changes))


@pytest.mark.parametrize("name", method_names())
def test_masked_tokens_get_exactly_zero(name: str) -> None:
    evidence = batch(proximal_logp=torch.zeros(3, 4, 5, dtype=torch.float64))
    method = parse_method(name)
    if method.needs <= {"proximal_logp", "score_norm_sq"}:
        update = method(evidence)
        assert (update.coefficients[~evidence.mask] == 0).all()
        assert update.step_scale.shape == ()
        assert torch.isfinite(update.coefficients).all()


def test_not_a_number_on_a_valid_token_names_field_and_row() -> None:
    evidence = batch()
    evidence.behavior_logp[1, 2][evidence.mask[1, 2]] = float("nan")
    with pytest.raises(NonFiniteEvidence, match=r"behavior_logp.*row \(1, 2\)"):
        parse_method("clip")(evidence)


def test_an_unknown_parameter_points_at_its_character() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_method("clip(hgih=3)")
    assert caught.value.position == 5
    assert "did you mean high" in caught.value.problem
