"""How weights reach a server: through files, CUDA IPC or NCCL, behind one interface.

Transfers through files have been run. **CUDA IPC and NCCL have never been run by us**: they follow the sources of the
releases and are tested against their recorded signatures only.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlparse

from safetensors.torch import save_file
from torch import Tensor

from vcpo_bench.bench.samplers.vllm_engine.http_client import Client
from vcpo_bench.bench.samplers.vllm_engine.releases import start_body, trainer_sends
from vcpo_bench.bench.samplers.vllm_engine.weight_folder import WeightFolder

Weights = Iterable[tuple[str, Tensor]]
_PACKAGE = "vllm.distributed.weight_transfer"


class Transfer(Protocol):
    """Brings weights to a paused server."""

    def push(self, weights: Weights) -> None:
        """All weights, by checkpoint name."""

    def close(self) -> None:
        """Release files and connections."""


class Disk:
    """A file that the server reads: it must see the same file system."""

    def __init__(self, client: Client) -> None:
        self._client, self._folder = client, WeightFolder()

    def push(self, weights: Weights) -> None:
        """See `Transfer`."""
        path = self._folder.path / "model.safetensors"
        # cloned, since a file cannot hold two names of one tensor
        save_file({name: tensor.detach().cpu().clone() for name, tensor in weights}, path, {"format": "pt"})
        self._client.post(
            "/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(self._folder.path)}}
        )

    def close(self) -> None:
        """Remove the file."""
        self._folder.close()


class _Source:
    """`WeightSource` of the releases that have it: names, types and shapes, and a fresh pass each time."""

    def __init__(self) -> None:
        self.weights: list[tuple[str, Tensor]] = []

    def metadata(self) -> list[Any]:
        meta = import_module(f"{_PACKAGE}.base").ParamMeta
        return [meta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in self.weights]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        return iter(self.weights)


class Driven:
    """Transfers of releases whose trainer side drives the whole exchange itself.

    Args:
        client: The server.
        info: Makes the trainer's description of the connection.
    """

    def __init__(self, client: Client, info: Callable[[], Any]) -> None:
        self._source = _Source()
        sender = import_module(f"{_PACKAGE}.clients").HTTPVLLMWeightSyncClient(client.url)
        factory = import_module(f"{_PACKAGE}.factory").WeightTransferTrainerFactory
        self._engine = factory.trainer_init(info(), client=sender, source=self._source)

    def push(self, weights: Weights) -> None:
        """See `Transfer`."""
        self._source.weights = list(weights)
        self._engine.send_weights()

    def close(self) -> None:
        """Close the connection."""
        self._engine.shutdown()


class StaticIpc:
    """CUDA IPC of releases whose trainer side is a function: handles travel over HTTP, weights stay on the GPU.

    Args:
        client: The server, on the same machine.
        release: Its release.
    """

    def __init__(self, client: Client, release: tuple[int, int]) -> None:
        self._client, self._release = client, release
        self._engine = import_module(f"{_PACKAGE}.ipc_engine").IPCWeightTransferEngine
        client.post("/init_weight_transfer_engine", {"init_info": {}})

    def push(self, weights: Weights) -> None:
        """See `Transfer`."""
        self._client.post("/start_weight_update", start_body(self._release))
        self._engine.trainer_send_weights(iter(list(weights)), {"send_mode": "http", "url": self._client.url})
        self._client.post("/finish_weight_update", {})

    def close(self) -> None:
        """Nothing is held between two transfers."""


class StaticNccl:
    """NCCL of releases whose trainer side is a function; trainer and engine need a GPU each."""

    def __init__(self, client: Client, release: tuple[int, int]) -> None:
        self._client, self._release = client, release
        self._engine = import_module(f"{_PACKAGE}.nccl_engine").NCCLWeightTransferEngine
        self._pool = ThreadPoolExecutor(1)
        meeting = rendezvous(client)
        told = {"init_info": {**meeting, "rank_offset": 1}}
        waiting = self._pool.submit(client.post, "/init_weight_transfer_engine", told)
        self._group = self._engine.trainer_init(meeting)
        waiting.result()

    def push(self, weights: Weights) -> None:
        """See `Transfer`: the server receives while this side sends."""
        listed = list(weights)
        info = {
            "names": [name for name, _ in listed],
            "dtype_names": [str(tensor.dtype).removeprefix("torch.") for _, tensor in listed],
            "shapes": [list(tensor.shape) for _, tensor in listed],
            "packed": True,
        }
        self._client.post("/start_weight_update", start_body(self._release))
        waiting = self._pool.submit(self._client.post, "/update_weights", {"update_info": info})
        self._engine.trainer_send_weights(iter(listed), {"group": self._group, "packed": True})
        waiting.result()
        self._client.post("/finish_weight_update", {})

    def close(self) -> None:
        """Stop the helper thread."""
        self._pool.shutdown()


def rendezvous(client: Client) -> dict[str, Any]:
    """Address where trainer and workers meet, and how many they are."""
    host = urlparse(client.url).hostname
    address = "127.0.0.1" if host in ("127.0.0.1", "localhost") else socket.gethostbyname(socket.gethostname())
    with socket.socket() as probe:
        probe.bind((address, 0))
        port = probe.getsockname()[1]
    return {
        "master_address": address,
        "master_port": port,
        "world_size": client.get("/get_world_size")["world_size"] + 1,
    }


def _open_disk(client: Client, release: tuple[int, int]) -> Transfer:
    return Disk(client)


def _open_ipc(client: Client, release: tuple[int, int]) -> Transfer:
    if not trainer_sends(release):
        return StaticIpc(client, release)
    return Driven(client, lambda: import_module(f"{_PACKAGE}.ipc_engine").IPCTrainerInitInfo(rank=0))


def _open_nccl(client: Client, release: tuple[int, int]) -> Transfer:
    if not trainer_sends(release):
        return StaticNccl(client, release)
    return Driven(
        client, lambda: import_module(f"{_PACKAGE}.nccl_engine").NCCLTrainerInitInfo(**rendezvous(client), rank=0)
    )


_OPEN = {"disk": _open_disk, "ipc": _open_ipc, "nccl": _open_nccl}


def open_transfer(kind: str, client: Client, release: tuple[int, int]) -> Transfer:
    """The transfer of that kind (`disk`, `ipc`, `nccl`) to a server of that release."""
    return _OPEN[kind](client, release)
