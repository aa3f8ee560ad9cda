#!/usr/bin/env bash
# The slow tests of every folder that has no lane of its own. In the environment of the README's test line.
# minutes: 4
# covers: *.py docs/* configs/* reports/* tests/*
set -euo pipefail
left_out=()
for script in .ci/integrations.d/slow_*.sh; do
    name=$(basename "$script" .sh)
    left_out+=("--ignore=tests/${name#slow_}")
done
exec pytest -m slow -ra --durations=5 "${left_out[@]}"
