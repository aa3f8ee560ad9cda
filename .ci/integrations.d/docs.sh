#!/usr/bin/env bash
# The documentation site: a strict build, then its links and reference.
# minutes: 2
# covers: docs/*.md docs/*/README.md *.md mkdocs.yml tools/site/* api/* methods/core/* adapters/*
# covers: analysis/monitoring/* tests/integrations/test_site.py pyproject.toml tests/helpers/patience.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' '.[docs]' mkdocs==1.6.1 mkdocs-material==9.8.1 \
    mkdocstrings==1.0.8 mkdocstrings-python==2.0.11 pytest
OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -ra tests/integrations/test_site.py \
    | .ci/all_passed
