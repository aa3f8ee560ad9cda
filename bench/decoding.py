"""Token-by-token evaluation of a policy, laid out for speed on a CPU.

Inside a step the batch is the last (contiguous) dimension of queries, keys and values, so attention over one new token
is a few long vectorised operations instead of thousands of tiny matrix products.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vcpo_bench.bench.policy import Block, Policy, causal_mask


class _Layer(NamedTuple):
    """The weights of one block as [in, out] matrices, the attention scale folded into the queries."""

    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    up: Tensor
    down: Tensor


class Decoder:
    """The state of decoding B responses: weights, key-value cache, position.

    When the weights change it is made anew, or told to `reload` them and go on with the cache of the old ones.

    Args:
        policy: the policy; its weights are read now.
        prompts: int64 [P, Lp], P dividing `rows`: the rows of one prompt are consecutive. All but the last token of
            each prompt are evaluated here, once per prompt; `step` takes the last one first.
        rows: B, the number of responses.
        length: most steps that will be taken.
    """

    def __init__(self, policy: Policy, prompts: Tensor, rows: int, length: int) -> None:
        config = policy.config
        self.policy, self.position = policy, prompts.shape[1] - 1
        self.blocks = policy.layers()
        self.layers = [_prepare(block) for block in self.blocks]
        size = config.width // config.heads
        # [keys and values, heads, size, position, row]
        self.caches = [torch.empty(2, config.heads, size, self.position + length, rows) for _ in range(config.layers)]
        self._prefill(prompts[:, :-1], rows // prompts.shape[0])

    def reload(self) -> None:
        """Read the weights again and keep the cache: what is in it stays what the old weights saw."""
        self.layers = [_prepare(block) for block in self.blocks]

    def _prefill(self, prompts: Tensor, group: int) -> None:
        """Put keys and values of the prompts [P, Lp - 1] into the cache, repeated for each row of a group."""
        x = self.policy.embed(prompts, 0)
        mask = causal_mask(prompts.shape[1], x)
        for index, (block, cache) in enumerate(zip(self.blocks, self.caches, strict=True)):
            if index < len(self.blocks) - 1:
                x, split = block(x, mask)
                split = split[1:, :, :, 0]
            else:
                P, L = prompts.shape
                split = torch.stack(block.keys_values(x)).view(2, P, block.heads, L, cache.shape[2])
            # [2, P, heads, L, size] -> [2, heads, size, L, P * group]
            cache[:, :, :, : self.position] = split.permute(0, 2, 4, 3, 1).repeat_interleave(group, -1)

    def step(self, token: Tensor) -> Tensor:
        """Feed one token per row, int64 [B], and get the logits of the next one, [V, B]."""
        t = self.position
        policy = self.policy
        x = F.embedding(token, policy.tokens.weight).add_(policy.positions.weight[t])
        for block, layer, cache in zip(self.blocks, self.layers, self.caches, strict=True):
            width, rows = x.shape[1], x.shape[0]
            normal = F.layer_norm(x, (width,), block.norm1.weight, block.norm1.bias)
            projections = torch.addmm(layer.qkv_bias, normal, layer.qkv).t()
            cache[:, :, :, t] = projections[width:].view(2, block.heads, -1, rows)
            query = projections[:width].contiguous().view(block.heads, -1, 1, rows)
            weights = (cache[0, :, :, : t + 1] * query).sum(1).softmax(1)
            mixed = (cache[1, :, :, : t + 1] * weights.unsqueeze(1)).sum(2).view(width, rows)
            x.add_(block.out.bias).addmm_(mixed.t(), layer.out)
            normal = F.layer_norm(x, (width,), block.norm2.weight, block.norm2.bias)
            inner = F.gelu(torch.addmm(block.up.bias, normal, layer.up))
            x.add_(block.down.bias).addmm_(inner, layer.down)
        self.position += 1
        normal = F.layer_norm(x, x.shape[1:], policy.norm.weight, policy.norm.bias)
        return torch.addmm(policy.head.bias.unsqueeze(1), policy.head.weight, normal.t())


def _prepare(block: Block) -> _Layer:
    """The weights of a block in the layout of `_Layer`."""
    width = block.out.weight.shape[0]
    scale = torch.ones(3 * width)
    scale[:width] = math.sqrt(block.heads / width)
    return _Layer(
        qkv=(block.qkv.weight * scale.unsqueeze(1)).t(),
        qkv_bias=block.qkv.bias * scale,
        out=block.out.weight.t(),
        up=block.up.weight.t(),
        down=block.down.weight.t(),
    )
