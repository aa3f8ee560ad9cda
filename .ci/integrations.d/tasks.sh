#!/usr/bin/env bash
# The math scorer beside math-verify, and sizes of models beside transformers.
# minutes: 5
# covers: bench/tasks/* records/* files/* naming/* errors.py tests/integrations/test_tasks_stacks.py
# covers: tests/helpers/math_pairs.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.23.0 math-verify==0.9.0 numpy pytest
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_tasks_stacks.py | .ci/all_passed
