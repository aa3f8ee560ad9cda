#!/usr/bin/env bash
# Cells of a grid that the newest TRL trains: the updates of our own loop, two processes, kills, resume, lag.
# minutes: 3
# covers: adapters/trl/* adapters/trainers/* adapters/*.py bench/trainers/* bench/running/cell/* bench/training/* methods/*
# covers: bench/tasks/text/* records/* files/* naming/* errors.py tests/integrations/test_cells_trl.py
# covers: tests/helpers/digits_task.py tests/helpers/hf_models.py tests/helpers/launched_grids.py tests/helpers/patience.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' trl==1.16.0 transformers==5.23.0 accelerate==1.15.0 \
    peft==0.21.2 numpy scipy 'pandas>=2.2' pyarrow matplotlib jinja2 typst pyyaml typer rich safetensors pytest
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_cells_trl.py --durations=5 |
    .ci/all_passed
