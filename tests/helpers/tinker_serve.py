"""Runs SkyRL's Tinker server with its JAX backend on this machine's CPU: `tinker_serve.py MODEL PORT FOLDER`.

SkyRL starts its engine through `uv`; here the engine is this file again, under the same Python. Before Python 3.12,
pydantic takes the typed dictionaries of SkyRL only from typing_extensions.
"""

import runpy
import sys
import typing

import typing_extensions

ENGINE = "engine"
BACKEND = {"max_lora_adapters": 8, "max_lora_rank": 16, "sample_max_num_sequences": 64}


def main() -> None:
    typing.TypedDict = typing_extensions.TypedDict
    if sys.argv[1] == ENGINE:
        del sys.argv[1]
        runpy.run_module("skyrl.tinker.engine", run_name="__main__")
    else:
        serve(*sys.argv[1:])


def serve(model: str, port: str, folder: str) -> None:
    import uvicorn
    from skyrl.tinker import api
    from skyrl.tinker.config import EngineConfig, config_to_argv

    api._build_uv_run_cmd_engine = lambda _, config: [sys.executable, __file__, ENGINE, *config_to_argv(config)]
    api.app.state.engine_config = EngineConfig(
        base_model=model,
        backend="jax",
        backend_config=BACKEND,
        checkpoints_base=f"{folder}/checkpoints",
        database_url=f"sqlite:///{folder}/tinker.db",
    )
    uvicorn.run(api.app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
