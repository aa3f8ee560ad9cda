#!/usr/bin/env bash
# Methods and the gauges inside the newest verl: policy losses, the trainer's gradients at one and two ranks, resume, lag.
# minutes: 9
# covers: adapters/verl/* adapters/*.py methods/* bench/score_norms/* analysis/monitoring/* naming/* errors.py
# covers: .ci/verl_environment tests/integrations/test_verl*.py tests/helpers/adapter_expressions.py
# covers: tests/helpers/patience.py tests/helpers/verl_cpu.py tests/helpers/verl_gradients.py
# covers: tests/helpers/verl_runs.py tests/helpers/verl_store.py tests/helpers/hf_models.py tests/helpers/stand_in_verl.py
# covers: adapters/trainers/* bench/trainers/* bench/running/cell/* bench/tasks/text/* records/*
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
.ci/verl_environment "$venv"
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_verl*.py --durations=5 |
    .ci/all_passed
