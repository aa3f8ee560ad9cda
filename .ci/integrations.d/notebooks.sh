#!/usr/bin/env bash
# Both notebooks run from top to bottom, as a reader would run them: with the installed package and its command.
# minutes: 3.5
# covers: notebooks/* api/* analysis/* reports/* commands/* bench/* methods/* records/* files/* naming/* errors.py
# covers: tests/integrations/test_notebooks.py tests/helpers/patience.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' . nbclient==0.10.2 nbformat==5.10.4 ipykernel==6.30.1 pytest
PATH="$venv/bin:$PATH" OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_notebooks.py | .ci/all_passed
