"""A tabular policy on a problem small enough to enumerate every batch: expectations of updates are exact sums.

A prompt is one of two tokens, a response two tokens of two: four responses, and 128 batches of one prompt with three
responses. Gradients are those of the softmax table, written down by hand: grad log pi(a|s) = onehot(a) - pi(.|s).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vcpo_bench.bench.policies.scores import DenseScores
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.trajectories import Responses, Trajectories

Floats = NDArray[np.float64]

T, G, STATES = 2, 3, 6
RESPONSES = list(itertools.product((0, 1), repeat=T))
BATCHES = [(x, *ys) for x in (0, 1) for ys in itertools.product(range(len(RESPONSES)), repeat=G)]
PROMPT = np.array([0.4, 0.6])
REWARD = np.array([[1.0, 0.0, 0.3, 2.0], [0.0, 1.5, 1.0, 0.2]])


class Table(nn.Module):
    """Logits by state: the prompt, then the prompt with the first token. Looks like a policy to `score`."""

    def __init__(self, logits: Floats) -> None:
        super().__init__()
        self.table = nn.Embedding(STATES, 2)
        self.head = nn.Identity()
        with torch.no_grad():
            self.table.weight.copy_(torch.from_numpy(logits))

    @property
    def device(self) -> torch.device:
        return self.table.weight.device

    def trainable(self) -> list[nn.Parameter]:
        return list(self.parameters())

    def score(self, given: Responses) -> DenseScores:
        return score(self, given)  # type: ignore[arg-type]

    score_rows = score

    def hidden(self, tokens: Tensor, first: int = 0) -> Tensor:
        assert first == 0
        later = 2 + 2 * tokens[:, :1] + tokens[:, 1:]
        return self.table(torch.cat([tokens[:, :1], later], dim=1))

    def hidden_after(self, prompts: Tensor, tokens: Tensor) -> Tensor:
        assert prompts.shape[1] == 0
        return self.hidden(tokens)


def logits(seed: int, spread: float) -> Floats:
    return np.random.default_rng(seed).normal(0, spread, (STATES, 2))


def token_logp(table: Floats) -> Floats:
    """[2, 4, T] log-probability of each token of each response to each prompt."""
    logs = table - np.log(np.exp(table).sum(1, keepdims=True))
    return np.array([[[logs[x, a], logs[2 + 2 * x + a, b]] for a, b in RESPONSES] for x in (0, 1)])


def scores(table: Floats) -> Floats:
    """[2, 4, T, D] gradient of the log-probability of each token, D the entries of the table."""
    pi = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    found = np.zeros((2, len(RESPONSES), T, STATES, 2))
    for x, (y, (a, b)) in itertools.product((0, 1), enumerate(RESPONSES)):
        for t, (state, token) in enumerate([(x, a), (2 + 2 * x + a, b)]):
            found[x, y, t, state] = np.eye(2)[token] - pi[state]
    return found.reshape(2, len(RESPONSES), T, STATES * 2)


def true_gradient(table: Floats) -> Floats:
    """[D] gradient of minus the expected reward, over T."""
    probability = np.exp(token_logp(table).sum(-1))
    return -np.einsum("x,xy,xytd->d", PROMPT, probability * REWARD, scores(table)) / T


def batch_probabilities(table: Floats) -> Floats:
    """[128] how likely each batch is under a policy."""
    probability = np.exp(token_logp(table).sum(-1))
    return np.array([PROMPT[x] * math.prod(probability[x, y] for y in ys) for x, *ys in BATCHES])


def updates_by_hand(method: str, theta: Floats, mu: Floats) -> Floats:
    """[128, D] step scale times gradient of the loss, for every batch, from the formulas of the papers."""
    now, then, score = token_logp(theta), token_logp(mu), scores(theta)
    found = []
    for x, *ys in BATCHES:
        reward, s = REWARD[x, ys], score[x, ys]
        ratio = np.exp(now[x, ys] - then[x, ys])
        weight, std, scale = ratio.prod(-1), reward.std(), 1.0
        advantage = (reward - reward.mean()) / std if std > 1e-8 else np.zeros(G)
        if method == "reinforce+raw":
            c = reward[:, None] * np.ones(T)
        elif method == "reinforce+rloo":
            c = (reward - (reward.sum() - reward) / (G - 1))[:, None] * np.ones(T)
        elif method == "clip":
            a = advantage[:, None]
            c = np.where(((a > 0) & (ratio > 1.2)) | ((a < 0) & (ratio < 0.8)), 0.0, a * ratio)
        else:
            if "vcpo" in method and "group" not in method:
                importance = weight**2 * np.square(s.sum(1)).sum(-1)
                baseline = (importance * reward).sum() / importance.sum()
                advantage = (reward - baseline) / std if std > 1e-8 else np.zeros(G)
            if "vcpo" in method and "off" not in method:
                scale = math.sqrt(weight.sum() ** 2 / (G * np.square(weight).sum()))
            c = (advantage * np.minimum(weight, 8.0))[:, None] * np.ones(T)
        found.append(-scale * np.einsum("gt,gtd->d", c, s) / (T * G))
    return np.array(found)


def trajectories(index: int, mu: Floats, version: int) -> Trajectories:
    """One of the 128 batches as the bench would hand it over."""
    x, *ys = BATCHES[index]
    return Trajectories(
        index=index,
        prompts=torch.tensor([[x]]),
        responses=torch.tensor([[RESPONSES[y] for y in ys]]),
        behavior_logp=torch.from_numpy(token_logp(mu)[x, ys]).float().unsqueeze(0),
        mask=torch.ones(1, G, T, dtype=torch.bool),
        reward=torch.from_numpy(REWARD[x, ys]).unsqueeze(0),
        version=torch.full((1, G, T), version),
    )


def exact(updates: Floats, probability: Floats, truth: Floats) -> dict[str, float]:
    """Every quantity of the probe, by summing over all batches."""
    mean = probability @ updates
    signal, along, length = float(mean @ mean), float(mean @ truth), float(truth @ truth)
    variance = float(probability @ np.square(updates).sum(1)) - signal
    norms = np.linalg.norm(updates, axis=1)
    cosines = np.where(norms > 0, updates @ truth / np.where(norms > 0, norms, 1.0), 0.0) / math.sqrt(length)
    return {
        "signal_sq": signal,
        "variance": variance,
        "snr": signal / variance,
        "snr_along": along * abs(along) / (length * variance),
        "gain": along / length,
        "bias_sq": float(np.square(mean - truth).sum()) / length,
        "cosine_of_mean": along / math.sqrt(signal * length),
        "cosine": float(probability @ cosines),
    }
