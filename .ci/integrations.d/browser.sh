#!/usr/bin/env bash
# The report in a real browser (Debian's Chromium through Playwright) and the PDF as images, in an environment of its own.
# It has no torch: reports must do without.
# minutes: 4
# covers: reports/* analysis/* records/* files/* naming/* errors.py tests/conftest.py tests/integrations/conftest.py
# covers: tests/integrations/test_browser*.py tests/integrations/test_pdf_pages.py tests/helpers/patience.py
set -euo pipefail
if ! command -v chromium >/dev/null || ! command -v pdftoppm >/dev/null; then
    .ci/apt update
    .ci/apt install -y --no-install-recommends chromium fonts-dejavu-core poppler-utils
fi
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet playwright==1.65.2 pytest==9.2.0 pillow==13.0.0 \
    jinja2==3.1.6 matplotlib==3.11.2 pandas==3.1.1 pyarrow==26.0.1 rich==15.0.0 scipy==1.17.1 typst==0.15.0
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest -ra \
    tests/integrations/test_browser*.py tests/integrations/test_pdf_pages.py \
    | .ci/all_passed
