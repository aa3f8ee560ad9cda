"""The key-value part of TransferQueue in memory, and verl's FSDP engine on a CPU."""

import pickle
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
import verl_cpu  # noqa: F401
from torch import Tensor
from transfer_queue import KVBatchMeta
from verl.utils.tensordict_utils import list_of_dict_to_tensordict
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

EngineRegistry._engines["language_model"]["fsdp2"]["cpu"] = FSDPEngineWithLMHead


class Store:
    """The key-value part of TransferQueue, in this process; it stands in for the real one after `install`."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}
        self.tags: dict[str, dict[str, dict[str, Any]]] = {}

    def kv_batch_put(
        self, keys: list[str], partition_id: str, fields: Any = None, tags: list[dict[str, Any]] | None = None
    ) -> KVBatchMeta:
        rows, kept = self.rows.setdefault(partition_id, {}), self.tags.setdefault(partition_id, {})
        for place, key in enumerate(keys):
            rows.setdefault(key, {})
            kept.setdefault(key, {}).update(tags[place] if tags else {})
            if fields is not None:
                rows[key].update(_row(fields, place))
        return KVBatchMeta(keys=list(keys), tags=[kept[key] for key in keys], partition_id=partition_id)

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: list[str] | None = None) -> Any:
        rows = [self.rows[partition_id][key] for key in keys]
        shared = set(rows[0]).intersection(*rows)
        wanted = set(rows[0]).union(*rows) & set(select_fields) if select_fields else shared
        assert wanted <= shared, f"{wanted - shared} are not ready in all the requested keys"
        names = [name for name in rows[0] if name in wanted]
        return list_of_dict_to_tensordict([{name: row[name] for name in names} for row in rows])

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, Any]]:
        return {name: dict(tags) for name, tags in self.tags.items() if partition_id in (None, name)}

    def kv_clear(self, keys: list[str], partition_id: str) -> None:
        for key in keys:
            self.rows[partition_id].pop(key, None)
            self.tags[partition_id].pop(key, None)

    def save_checkpoint(self, checkpoint_dir: str | Path, metadata: Any = None) -> None:
        Path(checkpoint_dir).mkdir(parents=True)
        Path(checkpoint_dir, "store.pickle").write_bytes(pickle.dumps((self.rows, self.tags)))

    def load_checkpoint(self, checkpoint_dir: str | Path) -> None:
        self.rows, self.tags = pickle.loads(Path(checkpoint_dir, "store.pickle").read_bytes())

    def install(self) -> None:
        for name in ("kv_batch_put", "kv_batch_get", "kv_list", "kv_clear", "save_checkpoint", "load_checkpoint"):
            setattr(tq, name, getattr(self, name))


def _row(fields: Any, place: int) -> dict[str, Any]:
    return {name: _plain(fields[name][place]) for name in list(fields.keys())}


def _plain(value: Any) -> Any:
    return value if torch.is_tensor(value) else getattr(value, "data", value)


def queue_row(
    uid: str, prompt: Tensor, response: Tensor, mask: Tensor, reward: float, logp: Tensor
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A finished response as verl's agent loop writes it into the queue: its fields, and its tag."""
    ids, scores = torch.cat([prompt, response]), torch.zeros(len(response))
    scores[-1] = reward
    field = {
        "uid": uid,
        "prompts": prompt,
        "responses": response,
        "response_mask": mask,
        "loss_mask": mask,
        "input_ids": ids,
        "position_ids": torch.arange(len(ids)),
        "rm_scores": scores,
        "rollout_log_probs": logp,
        "num_turns": 2,
    }
    counts = {"seq_len": len(ids), "prompt_len": len(prompt), "response_len": len(response)}
    return field, {**counts, "status": "success"}
