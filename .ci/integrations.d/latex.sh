#!/usr/bin/env bash
# Tables, macros and figures for papers, compiled by TeX Live in the classes of journals, in an environment without torch.
# minutes: 1
# covers: reports/* analysis/* records/* files/* naming/* errors.py tests/conftest.py tests/integrations/test_latex.py
# covers: tests/helpers/patience.py
set -euo pipefail
if ! command -v pdflatex >/dev/null || ! command -v pdftotext >/dev/null || ! kpsewhich acmart.cls ptmr7t.tfm >/dev/null; then
    .ci/apt update
    .ci/apt install -y --no-install-recommends poppler-utils texlive-latex-base texlive-latex-recommended \
        texlive-latex-extra texlive-publishers texlive-fonts-recommended
fi
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet pytest==9.2.0 jinja2==3.1.6 matplotlib==3.11.2 pandas==3.1.1 pyarrow==26.0.1 rich==15.0.0 scipy==1.17.1
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest -m "slow or not slow" -ra tests/integrations/test_latex.py \
    | .ci/all_passed
