#!/usr/bin/env bash
# Methods and the monitor inside the newest TRL: the gradient of every method at one and two ranks, resume, lag, LoRA.
# minutes: 4.5
# covers: adapters/trl/* adapters/*.py methods/* bench/score_norms/* bench/streams.py analysis/monitoring/* naming/*
# covers: errors.py examples/* tests/integrations/test_trl*.py tests/helpers/adapter_expressions.py
# covers: tests/helpers/patience.py tests/helpers/trl_gradients.py tests/helpers/trl_runs.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' trl==1.16.0 transformers==5.23.0 accelerate==1.15.0 peft==0.21.2 \
    numpy pyarrow pytest scipy
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_trl*.py --durations=5 |
    .ci/all_passed
