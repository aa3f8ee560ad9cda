"""A platform of verl for machines without an accelerator, and our plugin in it. Import it before anything of verl."""

import contextlib
import os
import types
import warnings
from collections.abc import Iterator
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", VERL_LOGGING_LEVEL="ERROR")
os.environ["VERL_USE_EXTERNAL_MODULES"] = "vcpo_bench.adapters.verl.plugin"  # as the entry point of a pip install does

import torch
from verl.plugin.platform import platform_manager
from verl.plugin.platform.platform_base import PlatformBase


def _nothing(*_: Any) -> int:
    return 0


class Device(types.ModuleType):
    """`torch.cpu` with the questions about memory that verl asks."""

    max_memory_allocated = max_memory_reserved = memory_allocated = memory_reserved = staticmethod(_nothing)
    empty_cache = ipc_collect = staticmethod(_nothing)
    get_rng_state, set_rng_state = staticmethod(torch.get_rng_state), staticmethod(torch.set_rng_state)

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


warnings.filterwarnings("ignore", module="verl")
platform_manager.set_platform(Cpu())
