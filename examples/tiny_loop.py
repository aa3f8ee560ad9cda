"""Asynchronous RL on one page: a policy learns to count from responses sampled by weights that are 8 updates old.

Run it: `python examples/tiny_loop.py [METHOD]`. It takes seconds on a CPU and needs torch.
"""

import sys
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vcpo_bench.methods import Batch, parse_method

DIGITS, TOKENS = 10, 8  # the prompt is a digit, and the response should count on from it: after 7, 8 9 0 1 2 3 4 5
PROMPTS, RESPONSES, LAG, RATE = 16, 8, 8, 3e-3
GROUP = torch.arange(PROMPTS).repeat_interleave(RESPONSES)  # [B]: the prompt that each row answers


class Policy(nn.Module):
    """A small recurrent network."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell = nn.Embedding(DIGITS, 32), nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, DIGITS)

    def forward(self, digits: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log-probabilities `[B, T, DIGITS]` of what follows each of the digits `[B, T]`, and the memory after them."""
        states, after = self.cell(self.embed(digits), memory)
        return self.head(states).log_softmax(-1), after


class Rollout(NamedTuple):
    """What the sampler hands over: prompts `[B, 1]`, responses and their log-probabilities `[B, T]`, and a version."""

    prompt: Tensor
    response: Tensor
    behavior_logp: Tensor
    version: int


@torch.no_grad()
def sample(policy: Policy, version: int) -> Rollout:
    """The sampler: responses from the weights as they are now."""
    prompt = torch.randint(DIGITS, (PROMPTS, 1))[GROUP]
    digit, memory, drawn = prompt, None, []
    for _ in range(TOKENS):
        logp, memory = policy(digit, memory)
        digit = logp[:, -1].exp().multinomial(1)
        drawn.append((digit, logp[:, -1].gather(1, digit)))
    response, behavior_logp = (torch.cat(each, 1) for each in zip(*drawn, strict=True))
    return Rollout(prompt, response, behavior_logp, version)


def train(expression: str, updates: int = 200) -> list[dict[str, float]]:
    """The learner: one update per rollout, `LAG` updates after it was sampled; returns what was seen at each."""
    torch.manual_seed(0)
    method, policy = parse_method(expression), Policy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=RATE)
    queue = deque(sample(policy, 0) for _ in range(LAG))  # the sampler is ahead of the learner
    state: dict[str, Tensor] = {}
    history = []
    for now in range(updates):
        queue.append(sample(policy, now))
        rollout = queue.popleft()
        read = torch.cat([rollout.prompt, rollout.response[:, :-1]], 1)
        reward = (rollout.response == (read + 1) % DIGITS).float().mean(1)  # [B]: the share of right digits
        logp = policy(read)[0].gather(2, rollout.response[..., None])[..., 0]  # [B, T] under the weights of now
        batch = Batch.from_rows(
            logp=logp,
            behavior_logp=rollout.behavior_logp,
            mask=torch.ones_like(rollout.response),
            reward=reward,
            group=GROUP,
            version=torch.full_like(rollout.response, rollout.version),
            now=now,
            state=state,
        )
        update = method(batch)  # evidence in; a coefficient for every token, and a scale of the step, out
        optimizer.param_groups[0]["lr"] = RATE * float(update.step_scale)
        optimizer.zero_grad()
        logp.backward(-batch.to_rows(update.coefficients))
        optimizer.step()
        state = dict(update.state)
        seen = {"lag": now - rollout.version, "reward": float(reward.mean())}
        history.append(seen | {"ESS ratio": float(update.metrics["ess_ratio"])})
    return history


if __name__ == "__main__":
    history = train(sys.argv[1] if len(sys.argv) > 1 else "vespo")
    for now in range(0, len(history), 20):
        print(f"update {now:3}", *(f"{name} {value:.3g}" for name, value in history[now].items()), sep="   ")
