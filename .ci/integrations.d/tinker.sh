#!/usr/bin/env bash
# A real Tinker server (SkyRL's, with its JAX backend on this machine's CPU) and its client. Newer clients than this one
# read samples as protocol buffers only, which this server does not send.
# minutes: 8
# covers: bench/* methods/* records/* files/* naming/* errors.py tests/integrations/test_tinker*.py
# covers: tests/helpers/fake_tinker.py tests/helpers/patience.py tests/helpers/tinker_cells.py
# covers: tests/helpers/tinker_runs.py tests/helpers/tinker_server.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet torch==2.13.0 'skyrl[tinker,jax]==0.3.0' tinker==0.24.1 jax==0.10.2 flax==0.12.8 pytest==9.2.0 \
    numpy scipy 'pandas>=2.2' pyarrow matplotlib jinja2 typst pyyaml typer rich safetensors
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 "$venv/bin/python" -m pytest \
    --confcutdir=tests/integrations -W default -ra tests/integrations/test_tinker.py \
    tests/integrations/test_tinker_training.py --durations=5 |
    .ci/all_passed
