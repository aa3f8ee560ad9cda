#!/usr/bin/env bash
# The slow tests of hardening: kills, full disks, interrupts. In the environment of the README's test line.
# minutes: 2.0
# covers: bench/* methods/* commands/* analysis/* records/* files/* naming/* errors.py cli.py __main__.py interrupts.py tests/hardening/* tests/helpers/* tests/conftest.py
set -euo pipefail
exec pytest -m slow -ra --durations=5 tests/hardening
