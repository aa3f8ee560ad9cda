#!/usr/bin/env bash
# The sandbox under attack, and the task that calls it, beside pydantic-monty.
# minutes: 1
# covers: bench/tasks/* bench/sandbox/* bench/policies/* records/* files/* naming/* errors.py
# covers: tests/integrations/test_sandbox.py tests/bench/sandbox/test_walls.py tests/bench/tasks/test_environment.py
# covers: tests/bench/policies/test_warm_start.py tests/helpers/attacks.py tests/helpers/echo_environment.py
# covers: tests/helpers/patience.py
set -euo pipefail
if ! command -v bwrap >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    .ci/apt update
    .ci/apt install -y --no-install-recommends bubblewrap
fi
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' pydantic-monty==1.4.0 numpy safetensors pydantic pyyaml pyarrow pytest
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_sandbox.py tests/bench/sandbox/test_walls.py \
    "tests/bench/tasks/test_environment.py::test_the_environment_answers_what_the_script_says_it_does[calc]" \
    "tests/bench/policies/test_warm_start.py::test_the_shipped_start_has_something_to_learn[tiny-calc]" | .ci/all_passed
