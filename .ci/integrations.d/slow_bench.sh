#!/usr/bin/env bash
# The slow tests of bench. In the environment of the README's test line.
# minutes: 5.0
# covers: bench/* methods/* records/* files/* naming/* errors.py tests/bench/* tests/helpers/* tests/conftest.py
set -euo pipefail
exec pytest -m slow -ra --durations=5 tests/bench
