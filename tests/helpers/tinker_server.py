"""A real Tinker server on a port of its own, and a tiny random Qwen3 for it."""

import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from patience import within

pytest.importorskip("skyrl", reason="runs in .ci/integrations tinker")
pytest.importorskip("tinker", reason="runs in .ci/integrations tinker")

from safetensors.torch import load
from transformers import Qwen3Config, Qwen3ForCausalLM

from vcpo_bench.bench.policies.hf.create import CHARACTERS, SPECIAL, character_tokenizer

STARTUP_SECONDS = 300


def save_qwen3(folder: Path, seed: int = 0) -> Path:
    """Two layers of width 64 and the character tokenizer."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(SPECIAL) + len(CHARACTERS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
        initializer_range=0.08,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    character_tokenizer().save_pretrained(folder)
    return folder


class TinkerServer:
    """The server of `tinker_serve.py`; killed and started again on the same port and folder if asked.

    Args:
        model: Folder of its base model.
        folder: Where its database, its checkpoints and its log are.
    """

    def __init__(self, model: Path, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url, self.model, self.folder = f"http://127.0.0.1:{self.port}", model, folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}
        script = Path(__file__).with_name("tinker_serve.py")
        command = [sys.executable, str(script), str(self.model), str(self.port), str(self.folder)]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        limit = time.monotonic() + within(STARTUP_SECONDS)
        while time.monotonic() < limit and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/api/v1/healthz", timeout=5).close()
            except OSError:
                time.sleep(0.5)
            else:
                return
        pytest.fail((self.folder / "log").read_text()[-3000:])

    def published(self, model: str = "") -> list[dict[str, torch.Tensor]]:
        """The adapters it has published of a model, oldest first.

        Args:
            model: Its `model_id`; empty: the model that published last.
        """
        folders = (self.folder / "checkpoints").glob(f"{model or '*'}/sampler_weights")
        folder = max(folders, key=lambda path: path.stat().st_mtime_ns)
        return [_adapters(file) for file in sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime_ns)]

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # with the engine, which would outlive it
        self.process.wait()


def _adapters(published: Path) -> dict[str, torch.Tensor]:
    with tarfile.open(published) as archive:
        (member,) = [each for each in archive.getmembers() if each.name.endswith("adapter_model.safetensors")]
        file = archive.extractfile(member)
        assert file is not None
        return load(file.read())
