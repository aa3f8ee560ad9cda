"""A method in a training loop of your own: VESPO on a toy policy whose samples are always 4 updates old.

Run it: `python examples/own_trainer.py [METHOD]`. It needs torch.
"""

import sys
from collections import deque

import torch

from vcpo_bench.methods import Batch, parse_method

PROMPTS, RESPONSES, TOKENS, WORDS, LAG = 8, 8, 4, 6, 4


def train(expression: str, updates: int = 150) -> list[float]:
    """The mean reward of every update; a response earns the share of its tokens that equal the prompt's number."""
    torch.manual_seed(0)
    method = parse_method(expression)
    policy = torch.nn.Embedding(WORDS, WORDS)  # one row of logits per prompt
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.03)
    group = torch.arange(PROMPTS).repeat_interleave(RESPONSES)  # [B]: which prompt each row answers
    prompt = group % WORDS
    mask = torch.ones(len(prompt), TOKENS, dtype=torch.bool)
    queue: deque[tuple[torch.Tensor, torch.Tensor]] = deque()
    rewards = []
    for _ in range(updates):
        with torch.no_grad():  # the sampler: tokens, and their log-probabilities when they were drawn
            law = torch.distributions.Categorical(logits=policy(prompt))
            drawn = law.sample((TOKENS,)).T  # [B, T]
            queue.append((drawn, law.log_prob(drawn.T).T))
        if len(queue) <= LAG:
            continue
        tokens, behavior_logp = queue.popleft()
        reward = (tokens == prompt[:, None]).float().mean(1)  # [B]
        logp = policy(prompt).log_softmax(-1).gather(1, tokens)  # [B, T]
        batch = Batch.from_rows(logp=logp.detach(), behavior_logp=behavior_logp, mask=mask, reward=reward, group=group)
        update = method(batch)
        optimizer.zero_grad()
        logp.backward(-batch.to_rows(update.coefficients))
        for each in optimizer.param_groups:
            each["lr"] = 0.03 * update.step_scale
        optimizer.step()
        rewards.append(float(reward.mean()))
    return rewards


if __name__ == "__main__":
    rewards = train(sys.argv[1] if len(sys.argv) > 1 else "vespo")
    first, last = sum(rewards[:10]) / 10, sum(rewards[-10:]) / 10
    print(f"mean reward of the first ten updates {first:.2f}, of the last ten {last:.2f}")
