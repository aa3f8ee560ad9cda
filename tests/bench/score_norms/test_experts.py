"""Score norms through experts, each of which sees its own tokens only: those of one backward pass per trajectory."""

import warnings

import torch

from vcpo_bench.bench.policies.moe.network import MoeConfig
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.trajectories import Responses

B, LP, T = 6, 4, 7


def test_norms_and_gradient_through_the_experts_are_exact() -> None:
    policy = MoePolicy(MoeConfig(vocab_size=10, context=LP + T), seed=4)
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(10, (B, LP), generator=generator)
    responses = torch.randint(10, (B, T), generator=generator)
    mask = torch.rand(B, T, generator=generator) < 0.7
    replayed = policy.own_routes(Responses(prompts.flip(0), responses.flip(0), torch.ones_like(mask)))
    for routes in (None, replayed):
        norms = ScoreNorms(policy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # neither a fallback nor one backward pass per trajectory
            with norms.record():
                scores = policy.score_rows(Responses(prompts, responses, mask, routes=routes))
            found = norms.squared_norms(scores.logp, scores.mask)
        expected = []
        for row in range(B):
            policy.zero_grad()
            one = slice(row, row + 1)
            policy.score(
                Responses(prompts[one], responses[one], mask[one], routes=None if routes is None else routes[one])
            ).logp.sum().backward()
            expected.append(sum(p.grad.double().square().sum() for p in policy.parameters() if p.grad is not None))
        torch.testing.assert_close(found.double(), torch.stack(expected), rtol=1e-4, atol=0)  # type: ignore[arg-type]
        policy.zero_grad()
        coefficients = torch.randn(B, generator=generator)
        norms.assemble(coefficients)
        assembled = [parameter.grad.clone() for parameter in policy.parameters() if parameter.grad is not None]
        policy.zero_grad()
        scored = policy.score(Responses(prompts, responses, mask, routes=routes)).logp
        scored.backward(-coefficients[:, None].expand_as(scored))
        for got, parameter in zip(assembled, policy.parameters(), strict=True):
            torch.testing.assert_close(got, parameter.grad, rtol=1e-4, atol=1e-5)
        norms.close()
