#!/usr/bin/env bash
# The study of `diagnose`, from nothing: bash tools/diagnose_study/run.sh RESULTS OUT. RESULTS is a results folder whose cells
# become logs; OUT receives runs, answers and tables. Each tool lives in an environment of its own under OUT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=$1 out=$2
mkdir -p "$out"
environment() { # NAME PACKAGES...
    [ -x "$out/env/$1/bin/python" ] && return
    python3 -m venv "$out/env/$1"
    "$out/env/$1/bin/pip" install --quiet "${@:2}"
}
environment rldoctor rldoctor==0.2.0
environment rlwatch rlwatch==0.5.1
environment rlprobe rlprobe==0.1.0
environment trl 'torch>=2.11,<2.14' trl==1.16.0 numpy pandas pyarrow pydantic pyyaml scipy
[ -x "$out/env/verl/bin/python" ] || "$here/../../.ci/verl_environment" "$out/env/verl"
python3 "$here/planted_runs.py" "$out/planted"
python3 "$here/recorded_runs.py" "$results" "$out/recorded"
[ -f "$out/trl/broken.trl/trainer_state.json" ] || "$out/env/trl/bin/python" "$here/train_trl.py" "$out/trl"
[ -f "$out/verl/broken.verl.jsonl" ] || OMP_NUM_THREADS=1 "$out/env/verl/bin/python" "$here/train_verl.py" "$out/verl"
for tool in rldoctor rlwatch rlprobe; do
    for runs in planted recorded trl verl; do
        "$out/env/$tool/bin/python" "$here/rivals.py" "$tool" "$out/$runs" "$out/$runs.$tool.csv" > /dev/null
    done
done
python3 "$here/score.py" "$out/planted" "$out/recorded" "$out/trl" "$out/verl" "$here/../../docs/studies/diagnose"
