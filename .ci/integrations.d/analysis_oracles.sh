#!/usr/bin/env bash
# The golden statistics recomputed by arviz-stats, rliable, lifelines and statsmodels: rliable needs pandas below 3.
# minutes: 0.5
# covers: analysis/collapse/* analysis/comparison/* analysis/diagnostics/* analysis/prediction/* analysis/*.py
# covers: tests/golden/* tests/integrations/test_analysis_oracles.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'pandas<3' arviz-stats==0.8.0 rliable==1.2.0 lifelines==0.30.3 statsmodels==0.15.0 pytest
"$venv/bin/python" -W ignore -c 'import arviz_stats, rliable, lifelines, statsmodels'  # absent, they would only be skipped
"$venv/bin/python" -m pytest --confcutdir=tests/integrations tests/integrations/test_analysis_oracles.py
