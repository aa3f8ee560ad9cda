#!/usr/bin/env bash
# The mirrors to the real TensorBoard, MLflow and trackio, read back with their own readers, and what cannot hurt a run.
# minutes: 3.5
# covers: bench/outside/* records/* files/* naming/* errors.py tests/integrations/test_trackers.py
# covers: tests/helpers/patience.py tests/helpers/tracked_runs.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' tensorboard==2.21.0 mlflow==3.17.2 trackio==0.43.0 \
    jinja2 matplotlib numpy pandas pyarrow pytest pyyaml rich safetensors scipy typer typst
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_trackers.py | .ci/all_passed
