#!/usr/bin/env bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=16 --mem=200G --time=12:00:00
# A grid on a Ray cluster inside one allocation of Slurm: sbatch ray_grid.sh GRID.yaml OUT
# Its token, new in each allocation, keeps others out, unless they can read the network; Ray older than 2.52 ignores it.
# Without Slurm: set RAY_AUTH_MODE and RAY_AUTH_TOKEN everywhere, run "ray start" by hand on each machine, then the last line.
set -euo pipefail
config=$1 out=$2
cores=${SLURM_CPUS_PER_TASK:?ask for them with --cpus-per-task} gpus=${SLURM_GPUS_PER_NODE:-0}
port=$((20000 + SLURM_JOB_ID % 5000)) # another allocation on the same node has another one
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
export RAY_worker_niceness=0 RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

steps=()
join() { # NODE ARGUMENTS: a node joins the cluster, for as long as its step runs
    srun --export=ALL --nodes=1 --ntasks=1 --nodelist="$1" --cpus-per-task="$cores" \
        ray start --block --num-cpus="$cores" --num-gpus="${gpus##*:}" "${@:2}" &
    steps+=($!)
}
joined() { ray status --address="$head:$port" 2>/dev/null | grep -c '^ 1 node_'; }
wait_for() { # NUMBER: until so many nodes have joined; ends the job where one cannot, which says why
    until [ "$(joined)" -ge "$1" ]; do
        for step in "${steps[@]}"; do kill -0 "$step" || exit 1; done
        sleep 2
    done
}
join "$head" --head --port=$port --include-dashboard=false
wait_for 1
for node in "${nodes[@]:1}"; do join "$node" --address="$head:$port"; done
wait_for "${#nodes[@]}"
vcpo-bench run --config "$config" --out "$out" --device "${DEVICE:-cuda}" --launcher "ray(address=$head:$port)"
