"""The built-in mixture of experts is Qwen3-MoE: same weights, same logits, same routes."""

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.moe.experts import choose
from vcpo_bench.bench.policies.moe.network import NORM_EPS, ROPE_BASE, MoeConfig, MoeTransformer

transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations hf")


def weights_of(network: MoeTransformer) -> dict[str, Tensor]:
    """The weights under the names of `Qwen3MoeForCausalLM`."""
    found = {
        "model.embed_tokens.weight": network.tokens.weight,
        "model.norm.weight": network.norm.weight,
        "lm_head.weight": network.head.weight,
    }
    for depth, block in enumerate(network.layers()):
        query, key, value = block.qkv.weight.chunk(3)
        experts = block.experts
        layer = {
            "input_layernorm.weight": block.norm1.weight,
            "self_attn.q_proj.weight": query,
            "self_attn.k_proj.weight": key,
            "self_attn.v_proj.weight": value,
            "self_attn.q_norm.weight": block.query_norm.weight,
            "self_attn.k_norm.weight": block.key_norm.weight,
            "self_attn.o_proj.weight": block.out.weight,
            "post_attention_layernorm.weight": block.norm2.weight,
            "mlp.gate.weight": block.experts.router.weight,
            "mlp.experts.gate_up_proj": torch.stack(list(experts.up.weights)),
            "mlp.experts.down_proj": torch.stack(list(experts.down.weights)),
        }
        found |= {f"model.layers.{depth}.{name}": tensor for name, tensor in layer.items()}
    return found


@torch.no_grad()
def test_same_weights_give_the_logits_and_routes_of_qwen3_moe() -> None:
    shape = MoeConfig(vocab_size=11, context=24, layers=3)
    network = MoeTransformer(shape, seed=3)
    generator = torch.Generator().manual_seed(5)
    for parameter in network.parameters():  # gains that are not 1 and routers that are not flat
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    theirs = transformers.Qwen3MoeForCausalLM(
        transformers.Qwen3MoeConfig(
            vocab_size=shape.vocab_size,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=shape.width // shape.heads,
            max_position_embeddings=shape.context,
            moe_intermediate_size=shape.inner,
            num_experts=shape.experts,
            num_experts_per_tok=shape.active,
            norm_topk_prob=True,
            rms_norm_eps=NORM_EPS,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
            attn_implementation="eager",
        )
    ).eval()
    missing, unexpected = theirs.load_state_dict(weights_of(network), strict=False)
    assert not unexpected
    assert not [name for name in missing if "rotary" not in name]
    tokens = torch.randint(11, (6, 24), generator=generator)
    answer = theirs(input_ids=tokens, output_router_logits=True)
    torch.testing.assert_close(network(tokens), answer.logits, rtol=0, atol=1e-5)
    _, routes = network.hidden(tokens)
    for depth, logits in enumerate(answer.router_logits):
        logits = logits.view(6, 24, -1)  # probabilities in some releases, which choose the same experts
        assert torch.equal(choose(logits, shape.active, None), routes[:, :, depth].long())
