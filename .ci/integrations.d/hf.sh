#!/usr/bin/env bash
# Language models: policies, samplers, training, warm-up, on random models (no download).
# minutes: 6.5
# covers: bench/* methods/* records/* files/* naming/* errors.py tests/bench/*/test_hf_*.py
# covers: tests/helpers/chance.py tests/helpers/hf_models.py tests/helpers/mock_cells.py
# covers: tests/gpu/* tests/helpers/mock_gpu.py tests/helpers/patience.py tests/helpers/replays.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.23.0 tokenizers==0.23.3 peft==0.21.2 '.[hf]' pytest
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 PYTHONPATH=$PWD/.types "$venv/bin/python" -m pytest --confcutdir=tests/bench -ra \
    tests/bench/*/test_hf_*.py tests/gpu/test_launches.py | .ci/all_passed
