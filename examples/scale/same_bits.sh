#!/usr/bin/env bash
# The README's grid with each launcher, and whether all of them left the same numbers: same_bits.sh OUT LAUNCHER...
# for example: same_bits.sh /shared/same local 'slurm(minutes=30,memory=1)' 'ray(address=local)'
# merge refuses to join cells whose numbers differ in any bit, wall-clock times aside, and names them.
set -euo pipefail
out=$1
shift
number=0
folders=()
for launcher in "$@"; do
    number=$((number + 1))
    folders+=("$out/$number")
    began=$SECONDS
    vcpo-bench run --methods vcpo,clip,vespo --staleness 1,16,128 --seeds 3 --steps 20 --quiet \
        --launcher "$launcher" --out "$out/$number"
    echo "$launcher: $((SECONDS - began)) s"
done
vcpo-bench results merge "${folders[@]}" --out "$out/joined"
echo "the same bits with: $*"
