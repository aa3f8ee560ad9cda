#!/usr/bin/env bash
# Grids on a real Slurm: its packages are unpacked into a folder, nothing is installed. Needs root, as Slurm's daemons do.
# minutes: 9
# covers: bench/* methods/* commands/* records/* files/* naming/* errors.py docs/scale.md examples/*
# covers: tests/integrations/test_slurm*.py tests/helpers/hf_models.py tests/helpers/launched_grids.py
# covers: tests/helpers/patience.py tests/helpers/slurm_cluster.py
set -euo pipefail
packages="freeipmi-common libevent-core-2.1-7 libevent-pthreads-2.1-7 libfreeipmi17 libhwloc15 libipmimonitoring6
    liblua5.3-0 libmunge2 libpmix2 librrd8 munge slurm-client slurm-wlm-basic-plugins slurmctld slurmd"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    echo "skipped: a real Slurm is unpacked from Debian packages for x86_64, by root"
    exit 0
fi
.ci/apt update
mkdir "$folder/debs" "$folder/root"
apt=$PWD/.ci/apt
# shellcheck disable=SC2086
(cd "$folder/debs" && "$apt" download $packages 2>/dev/null) || {
    echo "skipped: this release of Debian has no packages of Slurm 22.05"
    exit 0
}
for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root"; done
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --no-compile --quiet 'torch>=2.11,<2.14' submitit==1.5.4 ray==2.60.0 transformers==5.23.0 pytest==9.2.0 \
    numpy scipy 'pandas>=2.2' pyarrow matplotlib jinja2 typst pyyaml typer rich safetensors
VCPO_BENCH_SLURM_ROOT=$folder/root PYTHONPATH=$PWD/.types OMP_NUM_THREADS=1 "$folder/venv/bin/python" -m pytest \
    --confcutdir=tests/integrations -W default -ra tests/integrations/test_slurm*.py --durations=8 |
    .ci/all_passed
