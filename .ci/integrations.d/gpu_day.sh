#!/usr/bin/env bash
# The GPU day in its CPU form: every stage runs to its end on tiny sizes. The numbers mean nothing.
# minutes: 4.5
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.23.0 tokenizers==0.23.3 peft==0.21.2 '.[hf]'
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
for stage in $("$work/venv/bin/python" tests/gpu/day.py --list); do
    "$work/venv/bin/python" tests/gpu/day.py --stage "$stage" --device cpu --tiny --out "$work/day"
done
"$work/venv/bin/python" tests/gpu/day.py --summary --out "$work/day"
