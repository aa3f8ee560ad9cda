"""verl on a machine without an accelerator: a platform for the CPU, its FSDP engine there, and a store in memory."""

import contextlib
import os
import pickle
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", VERL_LOGGING_LEVEL="ERROR")

import torch
from verl.plugin.platform import platform_manager
from verl.plugin.platform.platform_base import PlatformBase


def _nothing(*_: Any) -> int:
    return 0


class Device(types.ModuleType):
    """`torch.cpu` with the questions about memory that verl asks."""

    max_memory_allocated = max_memory_reserved = memory_allocated = memory_reserved = staticmethod(_nothing)
    empty_cache = ipc_collect = staticmethod(_nothing)

    @staticmethod
    def mem_get_info(*_: Any) -> tuple[int, int]:
        return 1, 1

    @staticmethod
    def get_device_name(*_: Any) -> str:
        return "CPU"

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


class Cpu(PlatformBase):  # type: ignore[misc]
    device_name, vendor_name, device_module = "cpu", "none", Device("cpu_device")

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return True

    def current_device(self) -> str:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "NO_DEVICES"

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    manual_seed_all = manual_seed
    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = _nothing


platform_manager.set_platform(Cpu())

import transfer_queue as tq
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
        assert len({frozenset(row) for row in rows}) == 1, "some fields are not ready in all the requested keys"
        names = [name for name in rows[0] if select_fields is None or name in select_fields]
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
    return {name: value.data if hasattr(value := fields[name][place], "data") and not torch.is_tensor(value) else value
            for name in fields.keys()}
