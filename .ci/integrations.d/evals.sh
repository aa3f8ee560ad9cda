#!/usr/bin/env bash
# Scores by the real lm-eval, the mirror to the real wandb (offline, and online against a silent server), and logs that wandb
# and tensorboard wrote.
# minutes: 6
# covers: bench/outside/* bench/policies/* bench/tasks/* bench/cells/* analysis/logs/* records/* files/* naming/*
# covers: errors.py tests/integrations/test_wandb.py tests/integrations/test_foreign_logs.py
# covers: tests/integrations/test_lm_eval*.py tests/helpers/patience.py tests/helpers/tracked_runs.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' lm-eval==0.4.13 wandb==0.31.0 tensorboard transformers==5.23.0 accelerate==1.15.0 \
    jinja2 matplotlib numpy pandas pyarrow pytest pyyaml rich safetensors scipy typer typst
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_wandb.py tests/integrations/test_foreign_logs.py \
    tests/integrations/test_lm_eval_models.py | .ci/all_passed
