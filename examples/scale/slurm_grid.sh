#!/usr/bin/env bash
# A grid on Slurm, one job per cell, submitted from a login node: slurm_grid.sh GRID.yaml OUT
# OUT is on a file system that the nodes share. The same command with --detach taken away watches, and tidies up.
set -euo pipefail
config=$1 out=$2
vcpo-bench run --config "$config" --out "$out" --device "${DEVICE:-cuda}" --jobs 50 --detach \
    --launcher slurm --launcher-config "$(dirname "$0")/cluster.yaml"
