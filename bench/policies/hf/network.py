"""A Hugging Face causal language model as a network: hidden states, logits and cached single steps."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vcpo_bench.bench.policies.hf.shared_prompts import apart, share, worth_sharing
from vcpo_bench.errors import UsageError


class CausalNetwork(nn.Module):
    """Evaluates a causal language model on token ids, as scoring and sampling need it.

    Trained weights stay float32 and are read in `dtype` (autocast); frozen ones may be held in it.

    Args:
        network: `transformers.PreTrainedModel` for causal language modeling, on its device.
        pad: Padding id, on the left of prompts.
        dtype: What it computes in: float32 or bfloat16.
        recompute: Recompute activations in the backward pass (checkpointing).

    Raises:
        UsageError: The model's logits are not those of its head on its final hidden state, or it cannot recompute
            activations.
    """

    def __init__(self, network: Any, pad: int, dtype: torch.dtype = torch.float32, recompute: bool = False) -> None:
        super().__init__()
        self.network: Any = network.eval()  # dropout would make sampler and learner different policies
        self.pad, self.dtype = pad, dtype
        takes = inspect.signature(network.base_model.forward).parameters
        self._cache_name = "cache" if "cache" in takes else "past_key_values"  # until transformers 5.40
        self._recomputed = _checkpointed(network) if recompute else []
        self._check_head()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def output_head(self) -> nn.Module:
        """The module that turns the final hidden states into logits."""
        head: nn.Module = self.network.get_output_embeddings()
        return head

    def real(self, prompts: Tensor) -> Tensor:
        """Bool, the shape of prompts [P, Lp]: True from the first token on that is not padding."""
        return (prompts != self.pad).cumsum(1) > 0

    def hidden(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """The head's input for each response token, [B, T, width].

        Args:
            prompts: int64 [P, Lp], padded on the left, P dividing B.
            responses: int64 [B, T].
        """
        real = self.real(prompts)
        shortest_padding = int((~real).sum(1).min())
        prompts, real = prompts[:, shortest_padding:], real[:, shortest_padding:]
        group = len(responses) // len(prompts)
        if worth_sharing(prompts.shape[1], group, responses.shape[1]):
            return self._shared_hidden(prompts, real, responses.view(len(prompts), group, -1))
        prompts, real = (each.repeat_interleave(group, 0) for each in (prompts, real))
        tokens = torch.cat([prompts, responses[:, :-1]], 1)
        attended = torch.cat([real, real.new_ones(responses[:, :-1].shape)], 1).long()
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        with self.precision(), self._recomputing():
            out = self.network.base_model(
                input_ids=tokens, attention_mask=attended, position_ids=positions, use_cache=False
            )
        hidden: Tensor = out.last_hidden_state[:, prompts.shape[1] - 1 :]
        return hidden

    def _shared_hidden(self, prompts: Tensor, real: Tensor, responses: Tensor) -> Tensor:
        """As `hidden`, of responses [P, G, T], with one pass over each prompt."""
        shared = share(prompts, real, responses)
        with self.precision(), self._recomputing():
            out = self.network.base_model(
                input_ids=shared.tokens,
                attention_mask=self._mask(shared.visible),
                position_ids=shared.positions,
                use_cache=False,
            )
        return apart(out.last_hidden_state, prompts.shape[1], responses.shape[1])

    def prefill(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Any]:
        """Hidden states [n, L, width] and the cache of sequences padded on the right, int64 [n, L] and [n]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        real = (positions < lengths.unsqueeze(1)).long()
        out = self.network.base_model(input_ids=tokens, attention_mask=real, position_ids=positions, use_cache=True)
        return out.last_hidden_state, out[self._cache_name]

    def step(self, tokens: Tensor, positions: Tensor, visible: Tensor, cache: Any) -> Tensor:
        """Hidden states [S, width] of one more token for each of S sequences.

        Args:
            tokens: int64 [S].
            positions: int64 [S], the position of each token in its sequence.
            visible: bool [S, K], the columns of the cache that each sequence attends to.
            cache: Takes the place of a `transformers` cache, such as `cache_slots.Slots`.
        """
        out = self.network.base_model(
            input_ids=tokens.unsqueeze(1),
            attention_mask=self._mask(visible[:, None, None]),
            position_ids=positions.unsqueeze(1),
            use_cache=True,
            **{self._cache_name: cache},
        )
        hidden: Tensor = out.last_hidden_state[:, 0]
        return hidden

    def _mask(self, visible: Tensor) -> Tensor:
        """Which tokens attend to which, bool [..., queries, keys], as the network's attention takes it."""
        if self.network.config._attn_implementation == "sdpa":
            return visible
        return torch.zeros(visible.shape, dtype=self.dtype, device=visible.device).masked_fill(~visible, -torch.inf)

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [n, V] of hidden states [n, width]."""
        with self.precision():
            logits: Tensor = self.output_head()(hidden)
        return logits.float()

    @contextmanager
    def precision(self) -> Iterator[None]:
        """Compute in `dtype` inside the block."""
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            yield

    @contextmanager
    def _recomputing(self) -> Iterator[None]:
        """Enable activation checkpointing inside the block only: during sampling it would disable the KV cache."""
        for layer in self._recomputed:
            layer.training = True  # of the layer alone, not of its submodules: dropout stays off
        try:
            yield
        finally:
            for layer in self._recomputed:
                layer.training = False

    @torch.no_grad()
    def _check_head(self) -> None:
        """Refuse models that scale or cap what goes into the head or comes out: log-probabilities would be wrong.

        The logits are replaced by numbers up to 125, which must leave the model bit by bit: neither a cap nor a factor
        is small enough to pass.
        """
        seen: dict[str, Tensor] = {}

        def note(module: nn.Module, args: Any, out: Any) -> None:
            seen["hidden"] = out.last_hidden_state

        def replace(module: nn.Module, args: Any, logits: Tensor) -> Tensor:
            seen["input"] = args[0]
            seen["logits"] = (torch.arange(logits.shape[-1]) % 251 - 125).to(logits).expand_as(logits)
            return seen["logits"]

        tokens = torch.tensor([[1, 0, 1]], device=self.device) % self.network.config.vocab_size
        noting = self.network.base_model.register_forward_hook(note)
        with self.precision(), noting, self.output_head().register_forward_hook(replace):
            found = self.network(input_ids=tokens, use_cache=False).logits
        if not (
            seen.keys() == {"hidden", "input", "logits"}
            and torch.equal(seen["input"], seen["hidden"])
            and torch.equal(found, seen["logits"].to(found.dtype))
        ):
            raise UsageError(
                f"{type(self.network).__name__} scales or caps its logits{_logit_settings(self.network.config)}, which "
                "is not supported: take a model without (Llama, Qwen, Gemma 3), or switch it off in its config.json"
            )


def _logit_settings(config: Any) -> str:
    """The settings of a model that concern its logits, in parentheses; empty if it has none."""
    settings = config.get_text_config().to_dict().items()
    found = [f"{k}={v}" for k, v in settings if "logit" in k and "attn" not in k and type(v) in (int, float)]
    return f" ({', '.join(found)})" if found else ""


def _checkpointed(network: Any) -> list[nn.Module]:
    """Turn activation checkpointing on and return the modules that implement it."""
    newer = getattr(network, "activation_checkpointing_enable", None)  # the older name goes away in version 6
    try:
        (newer or network.gradient_checkpointing_enable)({"use_reentrant": False})
    except ValueError as error:
        raise UsageError(f"--checkpointing: {type(network).__name__} does not support it; drop the flag") from error
    return [module for module in network.modules() if getattr(module, "gradient_checkpointing", False)]
