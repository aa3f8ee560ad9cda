#!/usr/bin/env bash
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=16 --mem=900G --time=12:00:00 --requeue
# One cell on the 8 GPUs of a node, in an allocation of your own: sbatch slurm_cell.sh CELL.yaml OUT
# A job that Slurm queues again, or that you submit again after its time limit, goes on from the newest checkpoint.
# Fewer GPUs: sbatch --gpus-per-node=2, with SHARDS=2.
set -euo pipefail
config=$1 out=$2
srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:?ask for them with --cpus-per-task}" vcpo-bench run --config "$config" \
    --device "${DEVICE:-cuda}" --shards "${SHARDS:-8}" --out "$out" --wait
