"""Records what releases of vLLM call things, from their unpacked wheels, without importing them.

`python tests/golden/make_vllm_signatures.py VERSION=FOLDER ...` writes `vllm_signatures.json`.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

OUT = Path(__file__).with_name("vllm_signatures.json")
PARTS = ("sampling_params.py", "outputs.py", "engine", "entrypoints", "v1/engine", "v1/worker/gpu_model_runner.py",
         "v1/worker/gpu_worker.py", "distributed/weight_transfer")  # fmt: skip
CALLABLES = (
    "LLM.__init__", "LLM.generate", "LLM.collective_rpc", "LLMEngine.add_request", "LLMEngine.abort_request",
    "LLMEngine.step", "LLMEngine.set_weight_version", "LLMEngine.get_weight_version",
    "GPUModelRunner.reload_weights", "Worker.reload_weights",
    "IPCWeightTransferEngine.trainer_send_weights", "NCCLWeightTransferEngine.trainer_send_weights",
    "trainer_init", "WeightTransferTrainerFactory.trainer_init", "HTTPVLLMWeightSyncClient.__init__",
    "IPCTrainerWeightTransferEngine.send_weights", "NCCLTrainerWeightTransferEngine.send_weights",
)  # fmt: skip
RECORDS = (
    "EngineArgs", "SamplingParams", "RequestOutput", "CompletionOutput", "WeightVersionSpan",
    "IPCTrainerSendWeightsArgs",
    "NCCLTrainerSendWeightsArgs", "NCCLWeightTransferInitInfo", "NCCLWeightTransferUpdateInfo", "ParamMeta",
    "IPCTrainerInitInfo", "NCCLTrainerInitInfo", "TrainerInitInfo", "GenerateRequest",
)  # fmt: skip


def files(root: Path) -> Iterator[ast.Module]:
    for part in PARTS:
        path = root / "vllm" / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield ast.parse(file.read_text())


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, object]:
    spec = function.args
    names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
    keywords = [a.arg for a in spec.kwonlyargs]
    needed = names[: len(names) - len(spec.defaults)]
    needed += [name for name, default in zip(keywords, spec.kw_defaults, strict=True) if default is None]
    bound = names[:1] in (["self"], ["cls"])
    return {
        "names": names[bound:],
        "keywords": keywords,
        "needed": [name for name in needed if name not in ("self", "cls")],
        "open": spec.kwarg is not None,
    }


def fields(record: ast.ClassDef) -> list[str]:
    """Annotated attributes; of a class without them, those that its constructor sets."""
    found = [s.target.id for s in record.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    for item in record.body:
        if not found and isinstance(item, ast.FunctionDef) and item.name == "__init__":
            found = [a.arg for a in item.args.args][1:]
    return found


def routes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        first = node.args[0]
        declares = node.func.attr in ("get", "post", "add_api_route") and isinstance(first, ast.Constant)
        if declares and str(first.value).startswith("/"):
            yield str(first.value)


def record(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    records: dict[str, list[str]] = {}
    paths: set[str] = set()
    for tree in files(root):
        paths |= set(routes(tree))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in CALLABLES:
                found.setdefault(node.name, arguments(node))
            if not isinstance(node, ast.ClassDef):
                continue
            if node.name in RECORDS:
                records.setdefault(node.name, fields(node))
            for item in node.body:
                name = f"{node.name}.{getattr(item, 'name', '')}"
                if isinstance(item, ast.FunctionDef) and name in CALLABLES:
                    found.setdefault(name, arguments(item))
    return {"callables": found, "records": records, "routes": sorted(paths)}


if __name__ == "__main__":
    versions = dict(argument.split("=", 1) for argument in sys.argv[1:])
    found = {version: record(Path(folder)) for version, folder in versions.items()}
    OUT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
