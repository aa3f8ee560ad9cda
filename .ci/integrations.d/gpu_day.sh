#!/usr/bin/env bash
# The GPU day in its CPU form: every stage runs to its end on tiny sizes, and two on the mock device as far as it pretends. The
# numbers mean nothing. As on a machine without a network, the suite is not installed, and typst is not there.
# minutes: 6
# covers: tests/gpu/* bench/* methods/* records/* files/* naming/* errors.py
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
python=$work/venv/bin/python
"$work/venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' transformers==5.17.0 tokenizers peft==0.21.2 \
    scipy pandas pyarrow typer rich jinja2 safetensors
for absent in vcpo_bench typst vllm; do
    ! "$python" -c "import $absent" 2>/dev/null || { echo "$absent is there, and is not on a machine without a network" >&2; exit 1; }
done
day=("$python" tests/gpu/day.py --tiny --limit 1500 --out "$work/out" --work "$work/work")
"$python" tests/gpu/carried.py --python "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
export OMP_NUM_THREADS=1
"${day[@]}" --device cpu --stage all
"${day[@]}" --device mock --stage 1,5,6,8  # stages 3 and 4 have tests of their own, and 2 needs a second process
"${day[@]}" --summary
[ "$(ls "$work/out" | wc -l)" -eq 3 ]  # measurements of both, and the cells of stages 2, 7 and 9
