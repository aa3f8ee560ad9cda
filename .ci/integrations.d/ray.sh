#!/usr/bin/env bash
# Grids on Ray: a cluster of their own, and a running one that loses workers, a node and the parent.
# minutes: 6
# covers: bench/* methods/* commands/* records/* files/* naming/* errors.py tests/integrations/test_ray.py
# covers: tests/helpers/launched_grids.py tests/helpers/patience.py
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' ray==2.60.0 pytest==9.2.0 \
    numpy scipy 'pandas>=2.2' pyarrow matplotlib jinja2 typst pyyaml typer rich safetensors
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0 "$folder/venv/bin/python" -m pytest \
    --confcutdir=tests/integrations -W default -ra tests/integrations/test_ray.py --durations=5 |
    .ci/all_passed
