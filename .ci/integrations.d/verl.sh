#!/usr/bin/env bash
# Methods and the gauges inside the newest verl: policy losses, the trainer's gradients at one and two ranks, resume, lag.
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet 'torch>=2.11,<2.14' transformers==5.10.4 tensordict==0.10.0 ray==2.60.0 accelerate==1.15.0 \
    TransferQueue==0.1.10 torchdata==0.11.0 peft==0.21.2 datasets==5.2.0 hydra-core==1.3.8 codetiming==1.4.0 \
    cachetools==8.0.1 fastapi==0.165.0 uvicorn==0.54.0 pillow dill wrapt numpy pandas pyarrow pytest scipy
"$venv/bin/pip" install --quiet --no-deps verl==0.9.1 # of its dependencies those that training on a CPU imports
# nothing may be skipped here, hence the whole line
PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest --confcutdir=tests/integrations -W default -ra \
    tests/integrations/test_verl*.py --durations=5 |
    tee /dev/stderr | grep -Eq '^[0-9]+ passed(, [0-9]+ warnings?)? in'
