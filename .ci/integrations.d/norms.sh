#!/usr/bin/env bash
# Score norms on Hugging Face's causal language models, with opacus as a second oracle, and in TRL's loop.
# minutes: 1
# covers: bench/score_norms/* adapters/trl/* adapters/*.py methods/* tests/integrations/test_norms_*.py
# covers: tests/helpers/score_norms_oracle.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.23.0 opacus==1.6.0 trl==1.16.0 numpy pytest
PYTHONPATH=$PWD/.types "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_norms_*.py | .ci/all_passed
