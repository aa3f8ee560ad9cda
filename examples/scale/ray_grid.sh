#!/usr/bin/env bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=16 --time=12:00:00
# A grid on a Ray cluster inside one allocation of Slurm: sbatch ray_grid.sh GRID.yaml OUT
# Without Slurm: run the two "ray start" lines by hand, the first on one machine, the second on every other.
set -euo pipefail
config=$1 out=$2 port=6379
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
export RAY_worker_niceness=0 RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n') && export RAY_AUTH_TOKEN  # nobody else on these nodes
one_node=(srun --nodes=1 --ntasks=1 --cpus-per-task="$SLURM_CPUS_PER_TASK")
"${one_node[@]}" --nodelist="$head" ray start --head --port=$port --block &
until ray status --address="$head:$port" >/dev/null 2>&1; do
    kill -0 $! || exit  # the head has ended; it said why
    sleep 2
done
for node in "${nodes[@]:1}"; do
    "${one_node[@]}" --nodelist="$node" ray start --address="$head:$port" --block &
done
vcpo-bench run --config "$config" --out "$out" --device "${DEVICE:-cuda}" --launcher "ray(address=$head:$port)"
