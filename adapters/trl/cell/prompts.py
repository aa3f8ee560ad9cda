"""The prompts of a cell as TRL's data set, and its rewards as a reward function."""

from __future__ import annotations

from typing import Any

import torch

from vcpo_bench.bench.tasks.text.bound import BoundTask


class CellPrompts:
    """The prompts of a cell, in the order in which its updates consume them.

    They are the token ids of the loop of this project, which TRL does not tokenize again.

    Attributes:
        tensor: `[batches * prompts, Lp]` int64, padded on the left.
    """

    def __init__(self, task: BoundTask, seed: int, prompts: int, batches: int) -> None:
        self._task = task
        self.tensor = torch.cat([task.training_prompts(seed, batch, prompts) for batch in range(batches)])
        ids = [row[int((row != task.pad).int().argmax()) :].tolist() for row in self.tensor]
        self._texts = [task.tokenizer.decode(one) for one in ids]
        self._ids = dict(zip(self._texts, ids, strict=True))

    def dataset(self) -> Any:
        """One row per prompt: its text, and its number `row`."""
        from datasets import Dataset

        return Dataset.from_dict({"prompt": self._texts, "row": list(range(len(self._texts)))})

    def tokens(self, text: str) -> list[int]:
        """Token ids of a prompt of the data set, without padding."""
        return list(self._ids[text])

    def reward(self, completion_ids: list[list[int]], row: list[int], **others: Any) -> list[float]:
        """Rewards of responses to the prompts `row`, as TRL asks for them."""
        assert self._task.eos is not None
        responses = torch.full((len(completion_ids), self._task.max_response), self._task.eos)
        mask = torch.zeros(responses.shape, dtype=torch.bool)
        for index, ids in enumerate(completion_ids):
            responses[index, : len(ids)] = torch.tensor(ids)
            mask[index, : len(ids)] = True
        rewards: list[float] = self._task.reward(self.tensor[row], responses, mask).tolist()
        return rewards
