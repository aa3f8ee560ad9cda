#!/usr/bin/env bash
# Text tasks beside reasoning-gym, math-verify (a cross-check of the math scorer) and transformers (sizes of models).
# minutes: 5
# covers: bench/tasks/* records/* files/* naming/* errors.py tests/integrations/test_tasks_stacks.py
# covers: tests/helpers/math_pairs.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.23.0 reasoning-gym==0.1.25 math-verify==0.9.0 numpy pytest
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_tasks_stacks.py | .ci/all_passed
