"""The example of docs/score_norms.md for TRL really trains, and TRL's own fused head gives the same norms at a price.

Runs in the environment that `.ci/integrations.d/norms.sh` builds; skipped where those packages are absent.
"""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from score_norms_oracle import slow_norms
from torch import Tensor

from vcpo_bench.bench.score_norms import ScoreNorms

trl = pytest.importorskip("trl", reason="runs in .ci/integrations norms")
transformers = pytest.importorskip("transformers", reason="runs in .ci/integrations norms")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "score_norms.md"
WORDS = {word: number for number, word in enumerate(["<pad>", "<end>", "<odd>", *"0123456789+="])}


def example() -> type[Any]:
    """The trainer that the page shows."""
    (code,) = re.findall(r"```python\n(from trl .*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"torch": torch}
    exec(code, names)
    trainer: type[Any] = names["BaselineTrainer"]
    return trainer


class FusedTrainer(trl.GRPOTrainer):  # type: ignore[misc, name-defined]
    """Norms of what TRL computes itself."""

    norms = None

    def _compute_loss(self, model: Any, inputs: dict[str, Tensor]) -> Tensor:
        self.norms = self.norms or ScoreNorms(model)
        rows = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        attended = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        mask = inputs["completion_mask"].bool()
        with self.norms.record():
            logp, *_ = self._get_per_token_logps_and_entropies(model, rows, attended, mask.shape[1])
        self.norms.squared_norms(logp, mask, retain_graph=True)
        return -(inputs["advantages"] * (logp * mask).sum(1)).mean()


def trained(kind: type[Any], folder: Path) -> tuple[float, int]:
    """The largest relative error of any norm, and the number of batches."""
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    split = Tokenizer(WordLevel(WORDS, unk_token="<odd>"))
    split.pre_tokenizer = Split("", "isolated")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=split, pad_token="<pad>", eos_token="<end>")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    ends = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    config = transformers.LlamaConfig(vocab_size=len(WORDS), tie_word_embeddings=True, **shape, **ends)
    errors: list[float] = []

    class Compared(ScoreNorms):
        def squared_norms(self, logp: Tensor, mask: Tensor | None = None, **options: Any) -> Tensor:
            found = super().squared_norms(logp, mask, **options)
            assert mask is not None
            expected = slow_norms(self._model, (logp * mask).sum(1))
            errors.append(float(((found - expected).abs() / expected).max()))
            return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(kind._compute_loss.__globals__, "ScoreNorms", Compared)
        trainer = kind(
            model=transformers.LlamaForCausalLM(config),
            args=trl.GRPOConfig(
                output_dir=str(folder),
                per_device_train_batch_size=4,
                num_generations=4,
                max_completion_length=6,
                max_steps=3,
                scale_rewards="none",
                use_cpu=True,
                bf16=False,
                report_to=[],
                save_strategy="no",
            ),
            train_dataset=Dataset.from_dict({"prompt": ["1+2=", "3+4="]}),
            processing_class=tokenizer,
            reward_funcs=lambda completion_ids, **_: [float(len(set(ids))) for ids in completion_ids],
        )
        before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
        trainer.train()
    assert not any(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    return max(errors), len(errors)


def test_the_example_of_the_page_trains_with_exact_norms(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="score norms")
        error, batches = trained(example(), tmp_path)
    assert batches == 3
    assert error < 1e-5


def test_its_fused_head_takes_one_backward_pass_per_trajectory(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="4 for this batch.* is used by ChunkedLogProbFunction"):
        error, batches = trained(FusedTrainer, tmp_path)
    assert batches == 3
    assert error < 1e-5
