#!/usr/bin/env bash
# Methods in the loss hooks of other trainers: SkyRL's release; prime-rl and slime, which are on no package index, where
# PRIME_RL_SOURCE and SLIME_SOURCE name checkouts.
# minutes: 1
# covers: adapters/* methods/* naming/* errors.py tests/integrations/test_loss_paths_*.py tests/helpers/hook_rows.py
# covers: tests/helpers/loss_hook_contracts.py
set -euo pipefail
venv=$(mktemp -d)/venv
trap 'rm -rf "$(dirname "$venv")"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' numpy pyarrow pydantic pytest scipy \
    ray==2.60.0 jaxtyping==0.3.11 beartype==0.23.1 loguru==0.7.3 omegaconf==2.4.0 pyyaml pandas requests
"$venv/bin/pip" install --no-compile --quiet --no-deps skyrl==0.3.0 skyrl-gym==0.4.0
tests=(tests/integrations/test_loss_paths_skyrl.py)
if [ -n "${PRIME_RL_SOURCE:-}" ] && [ -n "${SLIME_SOURCE:-}" ]; then
    tests+=(tests/integrations/test_loss_paths_sources.py)
else
    echo "PRIME_RL_SOURCE and SLIME_SOURCE name no checkouts: prime-rl and slime are tested by their contracts only" >&2
fi
PYTHONPATH=$PWD/.types:$PWD/tests/helpers OMP_NUM_THREADS=1 "$venv/bin/python" -m pytest \
    --confcutdir=tests/integrations -W default -ra "${tests[@]}" --durations=5 |
    .ci/all_passed
