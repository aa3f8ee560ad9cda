#!/usr/bin/env bash
# The slow tests of packaging. In the environment of the README's test line.
# minutes: 20
# covers: *.py pyproject.toml tests/packaging/* commands/* bench/* methods/*
set -euo pipefail
exec pytest -m slow -ra --durations=5 tests/packaging
